/**
 * Exec, attach and port-forward: a client upgrades its connection and is put through to the container runtime.
 *
 * Job: choose the container, ask the node where the stream is served, connect there, then join the two connections:
 *   SPDY/3.1                          as it is: the runtime speaks it
 *   WebSocket, v5 or v4 channels      translated to SPDY streams (channels.ts)
 *   WebSocket, SPDY/3.1+PROTOCOL      port-forward's tunnel: its messages carry the bytes of SPDY
 *   WebSocket, older subprotocols     as it is: runtimes speak them
 * Boundary: who may do it was decided before; which run of a container is meant is the node's.
 *
 * Invariants:
 *  1. Nothing is answered before the runtime has agreed, so that every refusal is a metav1.Status.
 *  2. The end of either side ends the other; the server's close() ends both.
 *  3. Nothing is kept beyond what is under way: the slower side slows down the faster one.
 */
import type { IncomingMessage } from 'node:http';
import { createWebSocketStream } from 'ws';
import type { Pod } from '../../api/generated/types.ts';
import type { KindDefinition } from '../../api/kind.ts';
import type { StreamEndpoint, StreamSelection } from '../../machinery/node-connection.ts';
import { badRequest, serviceUnavailable } from '../../machinery/status.ts';
import type { ServerContext } from '../http/context.ts';
import type { Exchange, Upgrade } from '../http/exchange.ts';
import { chooseContainer } from '../http/logs.ts';
import type { ResourceRoute } from '../http/routes.ts';
import { RUNTIME_PROTOCOL, translateChannels } from './channels.ts';
import { join } from './join.ts';
import { attachOptions, execOptions, portForwardPorts } from './options.ts';
import { connectToRuntime, spdyUpgrade, type UpgradedConnection, type UpgradeRequest } from './runtime-connection.ts';
import { createSpdyConnection } from './spdy/spdy-connection.ts';
import { acceptWebSocket, checkHandshake, offeredProtocols } from './web-socket.ts';

const TUNNEL_PREFIX = 'SPDY/3.1+';
const CHANNEL_PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const;

type UpgradeKind = 'spdy' | 'websocket';

/** undefined for a request that asks for neither. */
function upgradeKind({ headers }: IncomingMessage): UpgradeKind | undefined {
  if (!/(^|[\s,])upgrade([\s,]|$)/i.test(headers.connection ?? '')) return undefined;
  const protocol = headers.upgrade?.toLowerCase();
  if (protocol === 'spdy/3.1') return 'spdy';
  return protocol === 'websocket' ? 'websocket' : undefined;
}

/** Which requests Node.js hands over as connections: those for a stream. Others with such a header are plain requests. */
export function upgradeFilter(kinds: readonly KindDefinition[]): (request: IncomingMessage) => boolean {
  const names = kinds.flatMap(({ subresources }) =>
    Object.keys(subresources).filter(
      (name) => subresources[name]?.connects !== undefined && subresources[name]?.subpaths !== true,
    ),
  );
  const ending = new RegExp(`/(${[...new Set(names)].join('|')})/?(\\?|$)`);
  return (request) => names.length > 0 && upgradeKind(request) !== undefined && ending.test(request.url ?? '');
}

/** What the client wants of the node, everything checked. */
interface Wanted {
  connect(signal: AbortSignal): Promise<StreamEndpoint>;
  /** Absent for port-forward. */
  streams?: StreamSelection;
}

/** Rejects with an ApiError, before anything was answered; resolves when the stream has ended. */
export async function serveStream(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<void> {
  const { request, upgrade } = exchange;
  const pod = (await server.backend.get(route.ref, route.namespace, route.name ?? '')) as Pod;
  const wanted = wantedOf(server, exchange, route, pod);
  const kind = upgradeKind(request);
  if (kind === undefined || upgrade === undefined) throw badRequest('Upgrade request required');
  exchange.endWithServer();
  const connect = async (asked: UpgradeRequest): Promise<UpgradedConnection> => {
    const { signal } = exchange;
    try {
      const { url } = await wanted.connect(signal);
      return await connectToRuntime(url, asked, signal);
    } catch (error) {
      throw signal.aborted ? serviceUnavailable('the API server is ending') : error;
    }
  };
  if (kind === 'spdy') return putThrough(server, exchange, upgrade, await connect(spdyUpgrade(spdyProtocols(request))));
  checkHandshake(request);
  const offered = offeredProtocols(request);
  const { streams } = wanted;
  const protocol = CHANNEL_PROTOCOLS.find((name) => offered.includes(name));
  if (streams !== undefined && protocol !== undefined) {
    const runtime = await connect(spdyUpgrade([RUNTIME_PROTOCOL]));
    const webSocket = await accept(request, upgrade, protocol, runtime);
    return translateChannels(
      webSocket,
      createSpdyConnection(runtime.socket),
      { ...streams, protocol },
      exchange.signal,
    );
  }
  const tunnelled = offered.filter((name) => name.startsWith(TUNNEL_PREFIX));
  if (streams === undefined && tunnelled.length > 0) {
    const runtime = await connect(spdyUpgrade(tunnelled.map((name) => name.slice(TUNNEL_PREFIX.length))));
    const chosen = runtime.headers['x-stream-protocol-version'];
    const webSocket = await accept(request, upgrade, `${TUNNEL_PREFIX}${chosen}`, runtime);
    return join(createWebSocketStream(webSocket), runtime.socket, server.timers, exchange.signal);
  }
  return putThrough(server, exchange, upgrade, await connect(sameHandshake(request)));
}

/** Throws an ApiError. */
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
    return { connect: (signal) => nodes.portForward(ref, ports, signal) };
  }
  const container = chooseContainer(pod, query.get('container') ?? undefined);
  checkHost();
  if (route.subresource === 'attach') {
    const streams = attachOptions(query, pod, container);
    return { streams, connect: (signal) => nodes.attach(ref, container, streams, signal) };
  }
  const options = execOptions(query);
  return { streams: options, connect: (signal) => nodes.exec(ref, container, options, signal) };
}

/** The header may come once with a list or several times. */
const spdyProtocols = ({ headers }: IncomingMessage): string[] =>
  String(headers['x-stream-protocol-version'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

function sameHandshake({ headers }: IncomingMessage): UpgradeRequest {
  const kept = ['upgrade', 'sec-websocket-key', 'sec-websocket-version', 'sec-websocket-protocol'];
  return {
    method: 'GET',
    headers: Object.fromEntries(kept.flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : []))),
  };
}

async function accept(request: IncomingMessage, upgrade: Upgrade, protocol: string, runtime: UpgradedConnection) {
  const { socket, head } = upgrade.take();
  try {
    return await acceptWebSocket(request, socket, head, protocol);
  } catch (error) {
    runtime.socket.destroy();
    throw error;
  }
}

/** Answers as the runtime has answered, and joins the two connections. */
function putThrough(
  server: ServerContext,
  exchange: Exchange,
  upgrade: Upgrade,
  runtime: UpgradedConnection,
): Promise<void> {
  const { socket, head } = upgrade.take();
  const names = ['upgrade', 'x-stream-protocol-version', 'sec-websocket-accept', 'sec-websocket-protocol'];
  const lines = names.flatMap((name) => {
    const value = runtime.headers[name];
    // A client that named no subprotocol refuses an answer that names one, be it empty.
    return value === undefined || value === '' ? [] : [`${name}: ${value}`];
  });
  socket.write(`${['HTTP/1.1 101 Switching Protocols', 'connection: Upgrade', ...lines].join('\r\n')}\r\n\r\n`);
  if (head.length > 0) socket.unshift(head);
  return join(socket, runtime.socket, server.timers, exchange.signal);
}
