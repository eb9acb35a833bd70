/** Counts the requests of the HTTP/2 connections, and closes connections that have had no request for too long. */
import type { ServerHttp2Session } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Millis } from '../../../machinery/time.ts';
import type { Timer, Timers } from '../../../platform/platform.ts';
import { HEADLESS_MILLIS } from '../bounds/limits.ts';

/** Connections that are about to be closed may take this long to send their waiting output. */
const LINGER_MILLIS = 500;

export interface Connection {
  readonly socket: TLSSocket;
  readonly requests: number;
  begin(): void;
  end(): void;
}

export interface Connections {
  add(socket: TLSSocket, session: ServerHttp2Session): Connection;
  requests(): number;
  /** Lets clients begin no more requests. Each connection ends with its last request. */
  close(): void;
  /** Closes the connections without requests, except new ones, whose client may not have sent its first request yet. */
  closeIdle(): void;
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
  /** Until this time, the connection counts as new; 0 after its first request. */
  #newUntil: Millis;
  /** The time at which the connection is closed if it then has no request. */
  #idleUntil: Millis;
  /** Requests do not replace the timer: when it fires too early, it is set again. */
  #timer: Timer | undefined;
  /** Set by close(): the connection ends with its last request. */
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
