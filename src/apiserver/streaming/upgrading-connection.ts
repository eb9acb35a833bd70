/** Connections that Node.js hands over because their clients request an upgrade. Refusals are still sent as HTTP. */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { KindDefinition } from '../../api/kind.ts';
import type { Upgrade } from '../http/exchange.ts';

type UpgradeKind = 'spdy' | 'websocket';

/** Returns undefined for a request for neither. */
export function upgradeKind({ headers }: IncomingMessage): UpgradeKind | undefined {
  if (!/(^|[\s,])upgrade([\s,]|$)/i.test(headers.connection ?? '')) return undefined;
  const protocol = headers.upgrade?.toLowerCase();
  if (protocol === 'spdy/3.1') return 'spdy';
  return protocol === 'websocket' ? 'websocket' : undefined;
}

/** Selects the upgrade requests that Node.js hands over as connections: those for streams. All others are plain requests. */
export function upgradeFilter(kinds: readonly KindDefinition[]): (request: IncomingMessage) => boolean {
  const names = kinds.flatMap(({ subresources }) =>
    Object.keys(subresources).filter(
      (name) => subresources[name]?.connects !== undefined && subresources[name]?.subpaths !== true,
    ),
  );
  const ending = new RegExp(`/(${[...new Set(names)].join('|')})/?(\\?|$)`);
  return (request) => names.length > 0 && upgradeKind(request) !== undefined && ending.test(request.url ?? '');
}

export interface UpgradingConnection {
  socket: Socket;
  head: Buffer;
}

/** Creates a response on the connection. The connection ends after the response. */
export function answerOn(request: IncomingMessage, socket: Socket): ServerResponse {
  socket.on('error', () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
  return response;
}

/** `take` may be called once, and only before the response has begun. */
export function takeable(response: ServerResponse, { socket, head }: UpgradingConnection, taken: () => void): Upgrade {
  return {
    take() {
      response.detachSocket(socket);
      taken();
      return { socket, head };
    },
  };
}
