/**
 * Serves exec and attach over WebSocket: translates the channels of v4.channel.k8s.io and v5.channel.k8s.io (the first byte of each
 * message) to the SPDY streams that the container runtime supports. Source: v1.33 remotecommand, KEP-4006.
 *
 * Invariants:
 *  1. Only one message at a time is passed on in each direction, so that a slow reader slows down the sender.
 *  2. The runtime gets only input and terminal sizes from the client. The API server parses the sizes first (terminal-sizes.ts).
 *  3. A client that is still connected gets exactly one metav1.Status on the error channel, after all output, and then a normal close. If
 *     the runtime sent no Status, the Status explains why the connection to the runtime ended.
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

/** The protocol for the runtime, whatever the version of the client: v5.channel.k8s.io differs from v4 only on the WebSocket. */
export const RUNTIME_PROTOCOL = 'v4.channel.k8s.io';

const NORMAL_CLOSURE = 1000;

type Input = Partial<Record<'stdin' | 'resize', SpdyStream>>;

/**
 * Resolves when the client's connection has ended; never rejects. Aborting `signal` ends both connections. `requested.output` is called for
 * each piece of data from the runtime.
 */
export async function translateChannels(
  webSocket: WebSocket,
  runtime: SpdyConnection,
  requested: StreamSelection & { protocol: 'v4.channel.k8s.io' | 'v5.channel.k8s.io'; output?(): void },
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
      // An error means that the client has disconnected, which the close event handles.
      webSocket.send(Buffer.concat([Buffer.of(channel), bytes]), () => resolve());
    });
  const output = (channel: number, bytes: Uint8Array): Promise<void> => {
    requested.output?.();
    return send(channel, bytes);
  };
  const status: Uint8Array[] = [];
  // Clients treat an initial empty message as the sign that the stream is open.
  await send(requested.stdout ? CHANNEL.stdout : requested.stderr ? CHANNEL.stderr : CHANNEL.error, new Uint8Array());

  let failure: Error | undefined;
  const refuse = (error: ProtocolError): void => {
    failure = badRequest(error.message);
    giveUp();
  };
  const serve = async (): Promise<void> => {
    const input = await openStreams(runtime, requested, output, async (bytes) => {
      requested.output?.();
      status.push(bytes);
    });
    passInput(webSocket, input, requested.protocol === 'v5.channel.k8s.io', refuse).catch(giveUp);
    await runtime.ended;
  };
  try {
    await Promise.race([serve(), givenUp.promise]);
  } catch (error) {
    failure = error as Error;
    giveUp();
  }
  // Resume reading, to receive the client's response to the close frame.
  webSocket.resume();
  signal.removeEventListener('abort', giveUp);
  if (status.length === 0) status.push(Buffer.from(JSON.stringify(lostStatus(failure, signal))));
  await send(CHANNEL.error, Buffer.concat(status));
  webSocket.close(NORMAL_CLOSURE);
  await closed;
}

async function openStreams(
  runtime: SpdyConnection,
  requested: StreamSelection,
  send: (channel: number, bytes: Uint8Array) => Promise<void>,
  receiveStatus: (bytes: Uint8Array) => Promise<void>,
): Promise<Input> {
  const nothing = async (): Promise<void> => undefined;
  const open = (wanted: boolean, streamtype: string, receive: (bytes: Uint8Array) => Promise<void>) =>
    wanted ? runtime.open({ streamtype }, receive) : undefined;
  const [, stdin, , , resize] = await Promise.all([
    open(true, 'error', receiveStatus),
    open(requested.stdin, 'stdin', nothing),
    open(requested.stdout, 'stdout', (bytes) => send(CHANNEL.stdout, bytes)),
    open(requested.stderr, 'stderr', (bytes) => send(CHANNEL.stderr, bytes)),
    open(requested.tty, 'resize', nothing),
  ]);
  return { stdin, resize };
}

/**
 * `mayClose`: whether the client can close stdin (v5). `refuse` is called for a message with malformed terminal sizes. Rejects if the
 * client breaks the WebSocket protocol.
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
      // Do not leave the loop: that would close the connection before the client has received its Status.
      refuse(error as ProtocolError);
    }
  }
}

function lostStatus(failure: Error | undefined, signal: AbortSignal): Status {
  if (signal.aborted) return serviceUnavailable('the API server is shutting down').status;
  if (failure instanceof ApiError) return failure.status;
  return internalError(failure?.message ?? 'the connection to the container runtime was lost').status;
}
