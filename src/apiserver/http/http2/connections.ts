/** The connections of HTTP/2: counts their requests, and closes those that have none for too long. */
import type { ServerHttp2Session } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Millis } from '../../../machinery/time.ts';
import type { Timer, Timers } from '../../../platform/platform.ts';
import { HEADLESS_MILLIS } from '../bounds/limits.ts';

/** How long a connection that is about to be closed may take to send its waiting output. */
const LINGER_MILLIS = 500;

export interface Connection {
  readonly socket: TLSSocket;
  readonly requests: number;
  /** Counts a request until end() is called. */
  begin(): void;
  end(): void;
}

export interface Connections {
  /** Adds a connection until it is closed. */
  add(socket: TLSSocket, session: ServerHttp2Session): Connection;
  /** Returns the number of requests of all connections. */
  requests(): number;
  /** Lets clients begin no more requests. Each connection ends with its last request. */
  close(): void;
  /** Closes the connections without requests, except those whose clients have had no time to send one. */
  closeIdle(): void;
  /** Closes all connections. */
  destroy(): void;
}

/** `idleMillis`: how long a connection may have no requests, whatever else its client sends. */
export function createConnections(timers: Timers, idleMillis: Millis): Connections {
  const all = new Set<Open>();
  let requests = 0;
  return {
    add(socket, session) {
      const connection = new Open(socket, session, timers, idleMillis);
      all.add(connection);
      socket.once('close', () => all.delete(connection));
      return {
        socket,
        get requests() {
          return connection.requests;
        },
        begin() {
          requests += 1;
          connection.begin();
        },
        end() {
          requests -= 1;
          connection.end();
        },
      };
    },
    requests: () => requests,
    close: () => all.forEach((connection) => void connection.close()),
    closeIdle: () => all.forEach((connection) => void connection.closeUnlessNew()),
    destroy: () => all.forEach(({ socket }) => void socket.destroy()),
  };
}

class Open {
  readonly socket: TLSSocket;
  readonly session: ServerHttp2Session;
  requests = 0;
  readonly #timers: Timers;
  readonly #idleMillis: Millis;
  /** Until when the connection is new. It is not new after its first request. */
  #newUntil: Millis;
  /** When the connection is closed if it has no requests until then. */
  #idleUntil: Millis;
  /** A connection has at most one timer, which is not replaced with each request. */
  #timer: Timer | undefined;
  /** Whether the socket ends soon: after LINGER_MILLIS, or with the server. */
  #isEnding = false;

  constructor(socket: TLSSocket, session: ServerHttp2Session, timers: Timers, idleMillis: Millis) {
    this.socket = socket;
    this.session = session;
    this.#timers = timers;
    this.#idleMillis = idleMillis;
    this.#newUntil = timers.now() + HEADLESS_MILLIS;
    this.#idleUntil = timers.now() + idleMillis;
    this.#limitIdleness();
    socket.once('close', () => this.#timer?.cancel());
  }

  begin(): void {
    this.requests += 1;
    this.#newUntil = 0;
  }

  end(): void {
    this.requests -= 1;
    if (this.requests > 0 || this.socket.destroyed) return;
    this.#idleUntil = this.#timers.now() + this.#idleMillis;
    this.#limitIdleness();
  }

  close(): void {
    this.#isEnding = true;
    this.session.close();
  }

  closeUnlessNew(): void {
    if (this.#timers.now() >= this.#newUntil) this.#closeIfIdle();
  }

  #limitIdleness(): void {
    this.#timer ??= this.#timers.at(this.#idleUntil, () => {
      this.#timer = undefined;
      if (this.requests > 0) return;
      if (this.#timers.now() < this.#idleUntil) this.#limitIdleness();
      else this.#closeIfIdle();
    });
  }

  #closeIfIdle(): void {
    if (this.requests > 0 || this.#isEnding) return;
    // Also if the session is closed already, as that of a client without credentials: Node.js waits until the client ends the connection.
    this.close();
    const cut = this.#timers.at(this.#timers.now() + LINGER_MILLIS, () => this.socket.destroy());
    this.socket.once('close', () => cut.cancel());
  }
}
