/** Handles connections that Node.js hands over because their clients request an upgrade. Refusals are still sent as HTTP responses. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { KindCatalog } from '../../api/catalog.ts';
import type { KindDefinition, SubresourceDefinition } from '../../api/kind.ts';
import { ServerResponse } from '../../platform/builtins/http.ts';
import type { Upgrade } from '../http/exchange.ts';
import { flag } from '../http/query.ts';

type UpgradeKind = 'spdy' | 'websocket';

const wantsUpgrade = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers.upgrade !== undefined && /(^|[\s,])upgrade([\s,]|$)/i.test(headers.connection ?? '');

/** Returns undefined if the request is not for an upgrade to SPDY/3.1 or WebSocket. */
export function upgradeKind({ headers }: IncomingMessage): UpgradeKind | undefined {
  if (!wantsUpgrade({ headers })) return undefined;
  const protocol = headers.upgrade?.toLowerCase();
  if (protocol === 'spdy/3.1') return 'spdy';
  return protocol === 'websocket' ? 'websocket' : undefined;
}

/**
 * Returns a function that selects the upgrade requests for streams, proxies, and watches and logs over WebSocket. Node.js handles other
 * requests as plain requests.
 */
export function upgradeFilter(catalog: KindCatalog): (request: IncomingMessage) => boolean {
  const paths = catalog.view((kinds) => ({
    isProxy: proxyPaths(kinds),
    isStream: subresourcePaths(kinds, ({ connects, subpaths }) => connects !== undefined && subpaths !== true),
    isLog: subresourcePaths(kinds, ({ operation }) => operation === 'log'),
  }));
  return (request) => {
    const { isStream, isProxy, isLog } = paths();
    const { url = '', method } = request;
    if (isProxy(url)) return wantsUpgrade(request);
    const kind = upgradeKind(request);
    if (kind === undefined) return false;
    return isStream(url) || (kind === 'websocket' && method === 'GET' && (isLog(url) || isWatch(url)));
  };
}

/** Whether the URL may be the URL of a watch. findRoute() decides later, and the errors that it throws are sent as HTTP responses. */
function isWatch(url: string): boolean {
  const [path = '', ...query] = url.split('?');
  if (!/^\/apis?\//.test(path)) return false;
  return path.includes('/watch/') || flag(new URLSearchParams(query.join('?')), 'watch') === true;
}

function subresourcePaths(
  kinds: readonly KindDefinition[],
  isWanted: (definition: SubresourceDefinition) => boolean,
): (url: string) => boolean {
  const names = kinds.flatMap(({ subresources }) =>
    Object.entries(subresources).flatMap(([name, definition]) => (isWanted(definition) ? [name] : [])),
  );
  const ending = new RegExp(`/(${[...new Set(names)].join('|')})/?(\\?|$)`);
  return (url) => names.length > 0 && ending.test(url);
}

function proxyPaths(kinds: readonly KindDefinition[]): (url: string) => boolean {
  const paths = kinds.flatMap(({ plural, subresources }) =>
    Object.entries(subresources)
      .filter(([, { operation }]) => operation?.startsWith('proxy') === true)
      .map(([name]) => `${plural}/[^/?]+/${name}`),
  );
  const beginning = new RegExp(`^/apis?/[^?]*?/(namespaces/[^/?]+/)?(${paths.join('|')})([/?]|$)`);
  return (url) => paths.length > 0 && beginning.test(url);
}

export interface UpgradingConnection {
  socket: Socket;
  head: Buffer;
}

/** Returns the HTTP response to the request on the socket. The connection ends after the response. */
export function answerOn(request: IncomingMessage, socket: Socket): ServerResponse {
  socket.on('error', () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // Node.js updates writableNeedDrain and emits `drain` only for responses on connections that it serves itself.
  Object.defineProperty(response, 'writableNeedDrain', { get: () => !response.destroyed && socket.writableNeedDrain });
  socket.on('drain', () => response.emit('drain'));
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
  return response;
}

/**
 * Calls `taken` when the connection is taken, with true for takeToAnswer() and false for take(). Take the connection only once, and only
 * before the response has begun.
 */
export function takeable(
  response: ServerResponse,
  { socket, head }: UpgradingConnection,
  taken: (answers: boolean) => void,
): Upgrade {
  const take = (answers: boolean) => {
    response.detachSocket(socket);
    taken(answers);
    return { socket, head };
  };
  return { take: () => take(false), takeToAnswer: () => take(true) };
}
