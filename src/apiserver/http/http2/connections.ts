/** Counts the requests of the HTTP/2 connections, and closes connections that have had no request for too long. */
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
  /** Adds a connection. The connection is removed when it is closed. */
  add(socket: TLSSocket, session: ServerHttp2Session): Connection;
  /** Returns the number of requests of all connections. */
  requests(): number;
  /** Lets clients begin no more requests. Each connection ends with its last request. */
  close(): void;
  /**
   * Closes the connections without requests, except connections that are so new that the client may not have sent its first request yet.
   */
  closeIdle(): void;
  /** Closes all connections. */
  destroy(): void;
}

/** Creates an empty set of connections. `idleMillis`: how long a connection may have no requests, whatever else its client sends. */
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
  /** The time until which the connection counts as new; 0 after its first request. closeUnlessNew() leaves new connections open. */
  #newUntil: Millis;
  /** The time at which the connection is closed if it has no request then. */
  #idleUntil: Millis;
  /** The only timer of the connection. Requests do not replace it: when it fires too early, it is set again. */
  #timer: Timer | undefined;
  /** Whether close() was called. The connection then ends with its last request, after LINGER_MILLIS if it is idle, or with the server. */
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
    // Destroy the connection even if its session is already closed, as after a request without credentials: Node.js would wait until the
    // client ends the connection.
    this.close();
    const cut = this.#timers.at(this.#timers.now() + LINGER_MILLIS, () => this.socket.destroy());
    this.socket.once('close', () => cut.cancel());
  }
}
