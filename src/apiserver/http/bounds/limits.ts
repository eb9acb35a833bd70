/** Bounds of what clients hold open: connections, TLS handshakes, watches and streams. */
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { tooManyRequests } from '../../../machinery/status.ts';
import type { Log } from '../../../platform/platform.ts';

export interface Limits {
  /** Open connections. Beyond that a new connection is closed at once, and with it those that wait for their next request. */
  connections: number;
  /** Connections within the TLS handshake. Beyond that the oldest is closed: an honest handshake takes milliseconds. */
  handshakes: number;
  watches: number;
  /** Logs, exec, attach and port-forward. */
  streams: number;
  /** SPDY streams of forwarded connections, of which each has two. */
  forwarded: number;
}

export const DEFAULT_LIMITS: Limits = {
  connections: 4096,
  handshakes: 256,
  watches: 2048,
  streams: 512,
  forwarded: 8192,
};

/** Source: upstream's max-in-flight filter of v1.33, which asks its clients to come again after a second. */
const RETRY_SECONDS = 1;

/** The answer to a request for which there is no room now. */
export const busy = () => tooManyRequests('Too many requests, please try again later.', RETRY_SECONDS);

/** The places of one kind of long requests. */
export interface Places {
  /** Runs the request in a place. Rejects with 429 TooManyRequests if all are taken. */
  within(request: () => Promise<void>): Promise<void>;
}

export function places(limit: number): Places {
  let taken = 0;
  return {
    async within(request) {
      if (taken >= limit) throw busy();
      taken += 1;
      try {
        await request();
      } finally {
        taken -= 1;
      }
    },
  };
}

/** Holds the server to its bounds of connections. */
export function boundConnections(server: Server, { connections, handshakes }: Limits, log: Log): void {
  server.maxConnections = connections;
  let isFull = false;
  server.on('drop', () => {
    if (!isFull) log.warn('connections are refused: too many are open', { connections });
    isFull = true;
    // Room for the next attempt of the client.
    server.closeIdleConnections();
  });
  /** By the address of the client, the oldest first: the TLS socket does not show the connection below it. */
  const waiting = new Map<string, Socket>();
  const addressOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  server.on('connection', (socket: Socket) => {
    isFull = false;
    const address = addressOf(socket);
    waiting.set(address, socket);
    socket.once('close', () => {
      if (waiting.get(address) === socket) waiting.delete(address);
    });
    if (waiting.size <= handshakes) return;
    for (const [oldest, connection] of waiting) {
      waiting.delete(oldest);
      connection.destroy();
      return;
    }
  });
  server.on('secureConnection', (socket) => void waiting.delete(addressOf(socket)));
}
