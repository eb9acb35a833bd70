/** Handles connections that Node.js hands over because their clients request an upgrade. Refusals are still sent as HTTP responses. */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { KindCatalog } from '../../api/catalog.ts';
import type { KindDefinition } from '../../api/kind.ts';
import type { Upgrade } from '../http/exchange.ts';

type UpgradeKind = 'spdy' | 'websocket';

const wantsUpgrade = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers.upgrade !== undefined && /(^|[\s,])upgrade([\s,]|$)/i.test(headers.connection ?? '');

/** Returns the protocol of the requested upgrade, or undefined if the request is not for an upgrade to SPDY/3.1 or WebSocket. */
export function upgradeKind({ headers }: IncomingMessage): UpgradeKind | undefined {
  if (!wantsUpgrade({ headers })) return undefined;
  const protocol = headers.upgrade?.toLowerCase();
  if (protocol === 'spdy/3.1') return 'spdy';
  return protocol === 'websocket' ? 'websocket' : undefined;
}

/** Returns a function that selects the upgrade requests for streams and proxies. Node.js handles all other requests as plain requests. */
export function upgradeFilter(catalog: KindCatalog): (request: IncomingMessage) => boolean {
  const paths = catalog.view((kinds) => ({ isStream: streamPaths(kinds), isProxy: proxyPaths(kinds) }));
  return (request) => {
    const { isStream, isProxy } = paths();
    const url = request.url ?? '';
    return isProxy(url) ? wantsUpgrade(request) : upgradeKind(request) !== undefined && isStream(url);
  };
}

/** Returns a function that returns whether a URL is the path of a stream of one of the kinds. */
function streamPaths(kinds: readonly KindDefinition[]): (url: string) => boolean {
  const names = kinds.flatMap(({ subresources }) =>
    Object.keys(subresources).filter(
      (name) => subresources[name]?.connects !== undefined && subresources[name]?.subpaths !== true,
    ),
  );
  const ending = new RegExp(`/(${[...new Set(names)].join('|')})/?(\\?|$)`);
  return (url) => names.length > 0 && ending.test(url);
}

/** Like streamPaths(), but for the subresources that forward requests to Pods. */
function proxyPaths(kinds: readonly KindDefinition[]): (url: string) => boolean {
  const paths = kinds.flatMap(({ plural, subresources }) =>
    Object.entries(subresources)
      .filter(([, { operation }]) => operation?.startsWith('proxy') === true)
      .map(([name]) => `${plural}/[^/?]+/${name}`),
  );
  const beginning = new RegExp(`^/apis?/[^?]*?/namespaces/[^/?]+/(${paths.join('|')})([/?]|$)`);
  return (url) => paths.length > 0 && beginning.test(url);
}

export interface UpgradingConnection {
  socket: Socket;
  head: Buffer;
}

/** Creates an HTTP response on the connection. The connection ends after the response. */
export function answerOn(request: IncomingMessage, socket: Socket): ServerResponse {
  socket.on('error', () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // Node.js reports to a response that its connection is full, and has sent its bytes, only while it serves the connection itself.
  Object.defineProperty(response, 'writableNeedDrain', { get: () => !response.destroyed && socket.writableNeedDrain });
  socket.on('drain', () => response.emit('drain'));
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
  return response;
}

/** Returns an Upgrade whose take() calls `taken`. take() may be called once, and only before the response has begun. */
export function takeable(response: ServerResponse, { socket, head }: UpgradingConnection, taken: () => void): Upgrade {
  return {
    take() {
      response.detachSocket(socket);
      taken();
      return { socket, head };
    },
  };
}
