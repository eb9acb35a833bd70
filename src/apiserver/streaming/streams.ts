/**
 * Serves exec, attach and port-forward: a client upgrades its connection, which is then relayed to the container runtime.
 *
 * The connection to the client decides how:
 *   SPDY/3.1                          frame by frame (spdy-relay.ts)
 *   WebSocket, v5 or v4 channels      translated to SPDY streams (channels.ts)
 *   WebSocket, SPDY/3.1+PROTOCOL      port-forward's tunnel, whose messages carry SPDY bytes: like SPDY/3.1
 *   WebSocket, older subprotocols     message by message (older-messages.ts), because runtimes support these subprotocols
 * Boundary: the request is already authorized; the node selects the run of the container.
 *
 * Invariants:
 *  1. Nothing is sent to the client before the runtime has accepted the connection, so that a refusal by the runtime can be sent as a
 *     metav1.Status.
 *  2. The end of either side ends the other side; the server's close() ends both.
 *  3. Only data in progress is buffered: the slower side slows down the faster side.
 *  4. The API server passes only whole frames and messages of limited length to the runtime. If a client breaks the protocol, the API
 *     server reports the error to the client and ends the connection.
 *  5. A command starts only in its turn (execTurn): the last stream of the command is not opened before the turn begins.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Pod } from '../../api/generated/types.ts';
import { badRequest, serviceUnavailable } from '../../machinery/status.ts';
import type { StreamEndpoint, StreamSelection } from '../../ports/node-connection.ts';
import { busy } from '../http/bounds/limits.ts';
import type { ServerContext } from '../http/context.ts';
import { type Exchange, requestContext, type Upgrade } from '../http/exchange.ts';
import { chooseContainer } from '../http/logs.ts';
import type { ResourceRoute } from '../http/routes.ts';
import { RUNTIME_PROTOCOL, translateChannels } from './channels.ts';
import { type CommandStart, createCommandStart } from './command-start.ts';
import { join } from './join-connections.ts';
import { inPieces } from './message-pieces.ts';
import { countMessages, messageStream } from './messages.ts';
import { olderMessages } from './older-messages.ts';
import { attachOptions, execOptions, portForwardPorts } from './options.ts';
import { ProtocolError } from './protocol-error.ts';
import { connectToRuntime, connectWebSocket, spdyUpgrade, type UpgradedConnection } from './runtime-connection.ts';
import { createSpdyConnection } from './spdy/spdy-connection.ts';
import { createSpdyRelay } from './spdy/spdy-relay.ts';
import type { StreamRoom } from './spdy/stream-limit.ts';
import { upgradeKind } from './upgrading-connection.ts';
import { acceptWebSocket, checkHandshake, closeForProtocol, offeredProtocols, olderProtocol } from './web-socket.ts';

const TUNNEL_PREFIX = 'SPDY/3.1+';
const PORT_STREAMS = ['error', 'data'];
const CHANNEL_PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const;

interface Wanted {
  connect(signal: AbortSignal): Promise<StreamEndpoint>;
  /** Absent for port-forward. */
  streams?: StreamSelection;
  /** Present only for exec. */
  start?: CommandStart;
  /** The ports in the query of a port-forward, usually of a client with an older protocol. Absent for exec and attach. */
  ports?: readonly number[];
}

/** Resolves when the stream has ended. Rejects only if nothing has been sent to the client yet. */
export async function serveStream(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<void> {
  const { request, upgrade } = exchange;
  const pod = (await server.backend.get(requestContext(exchange, route))) as Pod;
  const wanted = wantedOf(server, exchange, route, pod);
  const kind = upgradeKind(request);
  if (kind === undefined || upgrade === undefined) throw badRequest('Upgrade request required');
  exchange.endWithServer();
  const stream = { server, exchange, upgrade, wanted };
  try {
    if (kind === 'spdy') await serveSpdy(stream);
    else await serveWebSocket(stream);
  } finally {
    wanted.start?.left();
  }
}

interface Stream {
  server: ServerContext;
  exchange: Exchange;
  upgrade: Upgrade;
  wanted: Wanted;
}

/** Asks the node for the URL of the streams, and calls `open` with it. Rejects with 503 ServiceUnavailable if the signal aborts. */
async function connect<T>({ exchange, wanted }: Stream, open: (url: string, signal: AbortSignal) => Promise<T>) {
  const { signal } = exchange;
  try {
    const { url } = await wanted.connect(signal);
    return await open(url, signal);
  } catch (error) {
    // Do not end the command's turn on abort: a WebSocket handshake starts the command, which may start even after the abort.
    if (!signal.aborted) wanted.start?.started();
    throw signal.aborted ? serviceUnavailable('the API server is shutting down') : error;
  }
}

/**
 * Returns the stream with a connect() that first waits for the command's turn. Use it if the streams are opened as soon as the connection
 * exists, because the command then starts. The URL is valid only for a short time, so connect() asks for the URL after the wait.
 */
const inTurn = ({ wanted, ...stream }: Stream): Stream => ({
  ...stream,
  wanted: {
    ...wanted,
    async connect(signal) {
      await wanted.start?.turn(signal);
      return wanted.connect(signal);
    },
  },
});

const connectSpdy = (protocols: readonly string[]) => (url: string, signal: AbortSignal) =>
  connectToRuntime(url, spdyUpgrade(protocols), signal);

async function serveSpdy(stream: Stream): Promise<void> {
  const { exchange, upgrade } = stream;
  const runtime = await connect(stream, connectSpdy(spdyProtocols(exchange.request)));
  const { socket, head } = upgrade.take();
  const names = ['upgrade', 'x-stream-protocol-version'];
  const lines = names.flatMap((name) => {
    const value = runtime.headers[name];
    return value === undefined ? [] : [`${name}: ${value}`];
  });
  socket.write(`${['HTTP/1.1 101 Switching Protocols', 'connection: Upgrade', ...lines].join('\r\n')}\r\n\r\n`);
  if (head.length > 0) socket.unshift(head);
  return relay(stream, socket, runtime, () => undefined);
}

async function serveWebSocket(stream: Stream): Promise<void> {
  const { server, exchange, wanted } = stream;
  checkHandshake(exchange.request);
  const offered = offeredProtocols(exchange.request);
  const { streams } = wanted;
  const protocol = CHANNEL_PROTOCOLS.find((name) => offered.includes(name));
  if (streams !== undefined && protocol !== undefined) {
    const runtime = await connect(inTurn(stream), connectSpdy([RUNTIME_PROTOCOL]));
    const webSocket = await accept(stream, protocol, runtime.socket);
    const requested = { ...streams, protocol, output: () => wanted.start?.started() };
    return translateChannels(
      webSocket,
      createSpdyConnection(runtime.socket, server.timers),
      requested,
      exchange.signal,
    );
  }
  const tunneled = offered.filter((name) => name.startsWith(TUNNEL_PREFIX));
  if (streams === undefined && tunneled.length > 0) {
    const runtime = await connect(stream, connectSpdy(tunneled.map((name) => name.slice(TUNNEL_PREFIX.length))));
    const chosen = runtime.headers['x-stream-protocol-version'];
    const webSocket = await accept(stream, `${TUNNEL_PREFIX}${chosen}`, runtime.socket);
    return relay(stream, messageStream(webSocket, false), runtime, (message) => closeForProtocol(webSocket, message));
  }
  return inRoom(server.forwarded, 2 * (wanted.ports ?? []).length, () => serveOlder(stream, offered));
}

/**
 * Runs `serve` while `count` streams count toward the room. Use it for older protocols, with which the runtime forwards a connection for
 * each port as soon as the API server connects. Rejects with 429 TooManyRequests if `count` is not 0 and the room is full.
 */
async function inRoom(room: StreamRoom, count: number, serve: () => Promise<void>): Promise<void> {
  if (count > 0 && room.isFull()) throw busy();
  const leave = room.enter(() => count);
  try {
    await serve();
  } finally {
    leave();
  }
}

async function serveOlder(stream: Stream, offered: readonly string[]): Promise<void> {
  const { server, exchange, wanted } = stream;
  const older = olderProtocol(offered, wanted.streams !== undefined);
  const runtime = await connect(inTurn(stream), (url, signal) => connectWebSocket(url, older, signal));
  const webSocket = await accept(stream, offered.length === 0 ? undefined : older, runtime);
  const [client, far] = [messageStream(webSocket, true), messageStream(runtime, true)];
  // The runtime's first message consists only of a channel and is sent before the command starts.
  far.on('data', (message: string | Buffer) => message.length > 1 && wanted.start?.started());
  return join(client, far, server.timers, exchange.signal, {
    fromClient: olderMessages({ name: older, command: wanted.streams !== undefined }, far),
    fromRuntime: (message) => void (client.writable && client.write(message)),
    replied: async () => undefined,
    failed: refusal(stream, (message) => closeForProtocol(webSocket, message)),
  });
}

/** Returns the handler for errors in a client's bytes. `explain` reports a ProtocolError to the client. */
const refusal =
  ({ server, exchange }: Stream, explain: (message: string) => void) =>
  (error: Error): void => {
    if (!(error instanceof ProtocolError)) return;
    server.log.warn('client broke the protocol, connection ended', { path: exchange.path, error: error.message });
    explain(error.message);
  };

/** Relays SPDY frames until both connections are closed. `explain` is called if the client breaks the protocol. */
function relay(
  stream: Stream,
  client: Duplex,
  runtime: UpgradedConnection,
  explain: (message: string) => void,
): Promise<void> {
  const { server, exchange, wanted } = stream;
  const ended = new AbortController();
  client.once('close', () => ended.abort());
  runtime.socket.once('close', () => ended.abort());
  const signal = AbortSignal.any([exchange.signal, ended.signal]);
  const { streams, start } = wanted;
  const hasSizes = /^v[345]\./.test(String(runtime.headers['x-stream-protocol-version']));
  const types = streams === undefined ? PORT_STREAMS : commandStreams(streams, hasSizes);
  const frames = createSpdyRelay(client, runtime.socket, {
    types,
    once: streams !== undefined,
    // The runtime starts the command when all streams are open.
    start: start && { atStream: types.length, turn: () => start.turn(signal) },
    output: () => start?.started(),
    // Only port-forward needs the shared limit: it has two streams for each forwarded connection, whereas a command has at most four.
    room: streams === undefined ? server.forwarded : undefined,
  });
  signal.addEventListener('abort', frames.ended, { once: true });
  return join(client, runtime.socket, server.timers, exchange.signal, {
    ...frames,
    fromClient: inPieces(frames.fromClient, runtime.socket),
    failed: refusal(stream, (message) => {
      frames.refuse();
      explain(message);
    }),
  });
}

/**
 * Returns the types of the streams that the runtime expects for a command. The runtime does not reply to streams of other types.
 * `hasSizes`: whether the protocol supports terminal sizes.
 */
const commandStreams = ({ tty, ...requested }: StreamSelection, hasSizes: boolean): string[] => [
  'error',
  ...(tty && hasSizes ? ['resize'] : []),
  ...(['stdin', 'stdout', 'stderr'] as const).filter((type) => requested[type]),
];

function wantedOf(server: ServerContext, exchange: Exchange, route: ResourceRoute, pod: Pod): Wanted {
  const { nodes } = server;
  const { query } = exchange;
  const { namespace = '', name, uid = '' } = pod.metadata;
  const ref = { namespace, name, uid };
  const checkHost = (): void => {
    if (!pod.spec?.nodeName) throw badRequest(`pod ${name} does not have a host assigned`);
  };
  if (route.subresource === 'portforward') {
    const ports = portForwardPorts(query);
    checkHost();
    return { ports, connect: (signal) => nodes.portForward(ref, ports, signal) };
  }
  const container = chooseContainer(pod, query.get('container') ?? undefined);
  checkHost();
  if (route.subresource === 'attach') {
    const streams = attachOptions(query, pod, container);
    return { streams, connect: (signal) => nodes.attach(ref, container, streams, signal) };
  }
  const options = execOptions(query);
  return {
    streams: options,
    start: createCommandStart((signal) => nodes.execTurn(signal)),
    connect: (signal) => nodes.exec(ref, container, options, signal),
  };
}

/** The header may occur once with a list, or several times. */
const spdyProtocols = ({ headers }: IncomingMessage): string[] =>
  String(headers['x-stream-protocol-version'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

async function accept(
  { server, exchange, upgrade }: Stream,
  protocol: string | undefined,
  runtime: Socket | WebSocket,
) {
  const { socket, head } = upgrade.take();
  try {
    const webSocket = await acceptWebSocket(exchange.request, socket, head, protocol);
    countMessages(webSocket, socket, server.unfinished, exchange.user.name);
    return webSocket;
  } catch (error) {
    if ('terminate' in runtime) runtime.terminate();
    else runtime.destroy();
    throw error;
  }
}
