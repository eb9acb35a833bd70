/**
 * Limits the connections, TLS handshakes, watches, logs and streams that clients keep open, and the requests that wait. The limits on
 * requests are so low that users who are neither administrators nor components cannot occupy all connections.
 */
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { tooManyRequests } from '../../../machinery/status.ts';
import type { Millis } from '../../../machinery/time.ts';
import type { Log, Timers } from '../../../platform/platform.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { isHandling } from './pipelining.ts';
import { sharedPlaces } from './shared-places.ts';

export interface Limits {
  /**
   * A connection beyond the limit is refused, and idle connections are closed to make room. Other listeners, such as the listener for Pods,
   * may have three quarters of the connections.
   */
  connections: number;
  /** The HTTP/2 requests on all connections. Connections to other addresses than loopback may have three quarters of these requests. */
  requests: number;
  /** The connections in the TLS handshake. Beyond the limit, the oldest one is closed, because a normal handshake takes milliseconds. */
  handshakes: number;
  /** The requests in flight, except for long-running requests and those of members of system:masters. */
  inFlight: number;
  queued: number;
  watches: number;
  /** The open requests for logs, exec, attach, port-forward and the proxies of Pods, Services and Nodes. */
  streams: number;
  /** The streams of all port-forward requests together. Each forwarded connection has two streams. */
  forwarded: number;
  /**
   * The requests that wait, for example in an admission plugin. Waiting requests, watches and streams must leave some connections for other
   * requests.
   */
  waiting: number;
}

export const DEFAULT_LIMITS: Limits = {
  connections: 4096,
  requests: 4096,
  handshakes: 256,
  inFlight: 600,
  queued: 1024,
  watches: 2048,
  streams: 512,
  forwarded: 8192,
  waiting: 1280,
};

/** The limit on the memory of all waiting requests together: their bodies, and the objects that they keep. */
const WAITING_BYTES = 256 * 1024 * 1024;

/** Source: the max-in-flight filter of v1.33. */
const RETRY_SECONDS = 1;

export const busy = () => tooManyRequests('Too many requests, please try again later.', RETRY_SECONDS);

export interface Places {
  /** Rejects with 429 TooManyRequests if the user may not have a place now. */
  within(user: UserInfo, request: () => Promise<void>): Promise<void>;
}

export function places(limit: number): Places {
  const shared = sharedPlaces(limit);
  return {
    async within(user, request) {
      const leave = shared.take(user);
      if (leave === undefined) throw busy();
      try {
        await request();
      } finally {
        leave();
      }
    },
  };
}

export interface Waits {
  /** Counts a waiting request until the returned function is called. Throws 429 TooManyRequests if a limit would be exceeded. */
  begin(bytes: number): () => void;
}

export function limitedWaits(limit: number, limitBytes = WAITING_BYTES): Waits {
  let count = 0;
  let total = 0;
  return {
    begin(bytes) {
      if (count >= limit || total + bytes > limitBytes) throw busy();
      count += 1;
      total += bytes;
      return () => {
        count -= 1;
        total -= bytes;
      };
    },
  };
}

/**
 * How long a connection may be open without a request in progress while new connections are refused. The time is longer than the turns of
 * the event loop in which a connection is accepted and the head of its request is read.
 */
export const HEADLESS_MILLIS = 1000;

/** The part of the connections that other listeners may have, so that Pods cannot take all connections from the administrator. */
const PART_OF_OTHERS = 0.75;

/**
 * Returns a function that counts a connection of another listener and returns true if there is room for the connection. `closeIdle`: closes
 * the connections on which no request is in progress.
 */
export function boundConnections(
  server: Server,
  { connections, handshakes }: Limits,
  { log, timers, closeIdle }: { log: Log; timers: Timers; closeIdle: () => void },
): (socket: Socket) => boolean {
  server.maxConnections = connections;
  let isFull = false;
  let open = 0;
  let ofOthers = 0;
  /** The connections of HTTP/1.1 after the TLS handshake, except upgraded ones, oldest first. */
  const established = new Map<Socket, Millis>();
  const closeHeadless = (): void => {
    const latest = timers.now() - HEADLESS_MILLIS;
    for (const [socket, since] of established) {
      if (since > latest) return;
      if (!isHandling(socket)) socket.destroy();
    }
  };
  const full = (): void => {
    if (!isFull) log.warn('refusing connections: too many are open', { connections });
    isFull = true;
    // Make room, so that the refused client can connect when it tries again.
    closeIdle();
    closeHeadless();
  };
  server.on('drop', full);
  const countOthers = (change: 1 | -1): void => {
    ofOthers += change;
    server.maxConnections = connections - ofOthers;
  };
  /**
   * The connections in the TLS handshake, oldest first. The key is the client's address and port, because a TLS socket does not expose its
   * underlying connection.
   */
  const waiting = new Map<string, Socket>();
  const addressOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  server.on('connection', (socket: Socket) => {
    isFull = false;
    open += 1;
    const address = addressOf(socket);
    waiting.set(address, socket);
    socket.once('close', () => {
      open -= 1;
      if (waiting.get(address) === socket) waiting.delete(address);
    });
    if (waiting.size <= handshakes) return;
    for (const [oldest, connection] of waiting) {
      waiting.delete(oldest);
      connection.destroy();
      return;
    }
  });
  server.on('secureConnection', (socket) => {
    waiting.delete(addressOf(socket));
    // isHandling() does not know the requests of HTTP/2 connections. closeIdle() closes HTTP/2 connections without requests.
    if (socket.alpnProtocol === 'h2') return;
    established.set(socket, timers.now());
    socket.once('close', () => established.delete(socket));
  });
  server.on('upgrade', (_request, connection) => established.delete(connection as Socket));
  return (socket) => {
    if (open >= connections || ofOthers >= connections * PART_OF_OTHERS) {
      full();
      return false;
    }
    countOthers(1);
    socket.once('close', () => countOthers(-1));
    return true;
  };
}
