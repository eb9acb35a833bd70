/**
 * Exec and attach over WebSocket: translates the channels of v4.channel.k8s.io and v5.channel.k8s.io (the first byte of a
 * message) to the SPDY streams that the container runtime knows. Source: v1.33 remotecommand, KEP-4006.
 *
 * Invariants:
 *  1. One message at a time in each direction: whoever reads slowly slows down who sends.
 *  2. What the runtime gets of the client is input and sizes of the terminal, each read before (terminal-sizes.ts).
 *  3. A client that is still there gets exactly one metav1.Status on the error channel, after all output, and then a normal
 *     close: the runtime's, or one that says that the connection to the runtime was lost.
 */
import type { WebSocket } from 'ws';
import type { Status } from '../../machinery/meta.ts';
import { ApiError, badRequest, internalError, serviceUnavailable } from '../../machinery/status.ts';
import type { StreamSelection } from '../../ports/node-connection.ts';
import { messageStream } from './messages.ts';
import type { ProtocolError } from './protocol-error.ts';
import type { SpdyConnection, SpdyStream } from './spdy/spdy-connection.ts';
import { createSizeReader } from './terminal-sizes.ts';

export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** What the runtime is asked for; `v5.channel.k8s.io` differs in the WebSocket alone. */
export const RUNTIME_PROTOCOL = 'v4.channel.k8s.io';

const NORMAL_CLOSURE = 1000;

type Input = Partial<Record<'stdin' | 'resize', SpdyStream>>;

/** Resolves when the client's connection has ended, and that of the runtime ends; never rejects. `output`: called when the runtime sends data. */
export async function translateChannels(
  webSocket: WebSocket,
  runtime: SpdyConnection,
  asked: StreamSelection & { protocol: 'v4.channel.k8s.io' | 'v5.channel.k8s.io'; output?(): void },
  signal: AbortSignal,
): Promise<void> {
  const closed = new Promise<void>((resolve) => webSocket.once('close', resolve));
  webSocket.on('error', () => undefined);
  closed.then(() => runtime.destroy());
  const givenUp = Promise.withResolvers<void>();
  const giveUp = (): void => {
    runtime.destroy();
    givenUp.resolve();
  };
  if (signal.aborted) giveUp();
  else signal.addEventListener('abort', giveUp, { once: true });

  const send = (channel: number, bytes: Uint8Array): Promise<void> =>
    new Promise((resolve) => {
      // Called with an error where the client has gone: its end is heard of otherwise.
      webSocket.send(Buffer.concat([Buffer.of(channel), bytes]), () => resolve());
    });
  const output = (channel: number, bytes: Uint8Array): Promise<void> => {
    asked.output?.();
    return send(channel, bytes);
  };
  const status: Uint8Array[] = [];
  // Clients take a first, empty message as the sign that the stream is there.
  await send(asked.stdout ? CHANNEL.stdout : asked.stderr ? CHANNEL.stderr : CHANNEL.error, new Uint8Array());

  let failure: Error | undefined;
  const refuse = (error: ProtocolError): void => {
    failure = badRequest(error.message);
    giveUp();
  };
  const serve = async (): Promise<void> => {
    const input = await openStreams(runtime, asked, output, async (bytes) => {
      asked.output?.();
      status.push(bytes);
    });
    passInput(webSocket, input, asked.protocol === 'v5.channel.k8s.io', refuse).catch(giveUp);
    await runtime.ended;
  };
  try {
    await Promise.race([serve(), givenUp.promise]);
  } catch (error) {
    failure = error as Error;
    giveUp();
  }
  // The answer to the close is read.
  webSocket.resume();
  signal.removeEventListener('abort', giveUp);
  if (status.length === 0) status.push(Buffer.from(JSON.stringify(lostStatus(failure, signal))));
  await send(CHANNEL.error, Buffer.concat(status));
  webSocket.close(NORMAL_CLOSURE);
  await closed;
}

async function openStreams(
  runtime: SpdyConnection,
  asked: StreamSelection,
  send: (channel: number, bytes: Uint8Array) => Promise<void>,
  receiveStatus: (bytes: Uint8Array) => Promise<void>,
): Promise<Input> {
  const nothing = async (): Promise<void> => undefined;
  const open = (wanted: boolean, streamtype: string, receive: (bytes: Uint8Array) => Promise<void>) =>
    wanted ? runtime.open({ streamtype }, receive) : undefined;
  const [, stdin, , , resize] = await Promise.all([
    open(true, 'error', receiveStatus),
    open(asked.stdin, 'stdin', nothing),
    open(asked.stdout, 'stdout', (bytes) => send(CHANNEL.stdout, bytes)),
    open(asked.stderr, 'stderr', (bytes) => send(CHANNEL.stderr, bytes)),
    open(asked.tty, 'resize', nothing),
  ]);
  return { ...(stdin === undefined ? {} : { stdin }), ...(resize === undefined ? {} : { resize }) };
}

/**
 * Reads to the client's end, also when nobody takes it any more. Rejects where the client breaks the WebSocket protocol;
 * `refuse` is called where what it sends in it is malformed.
 */
async function passInput(
  webSocket: WebSocket,
  { stdin, resize }: Input,
  mayClose: boolean,
  refuse: (error: ProtocolError) => void,
): Promise<void> {
  const sizesOf = createSizeReader();
  const take = async (channel: number | undefined, content: Uint8Array): Promise<void> => {
    if (channel === CHANNEL.stdin) await stdin?.write(content);
    else if (channel === CHANNEL.resize) await resize?.write(sizesOf(content));
    else if (channel === CHANNEL.close && mayClose && content[0] === CHANNEL.stdin) stdin?.end();
  };
  for await (const message of messageStream(webSocket, true)) {
    const bytes = typeof message === 'string' ? Buffer.from(message) : (message as Buffer);
    try {
      await take(bytes[0], bytes.subarray(1));
    } catch (error) {
      // To leave the loop would cut the connection, before the client has its status.
      refuse(error as ProtocolError);
    }
  }
}

function lostStatus(failure: Error | undefined, signal: AbortSignal): Status {
  if (signal.aborted) return serviceUnavailable('the API server is ending').status;
  if (failure instanceof ApiError) return failure.status;
  return internalError(failure?.message ?? 'the connection to the container runtime was lost').status;
}
