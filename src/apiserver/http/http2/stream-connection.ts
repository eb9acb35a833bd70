/** The connection of a request on a stream of HTTP/2, with the interface that the handlers of requests use. */
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** Emits `close` when the stream closes. destroy() resets only the stream, not the shared connection. */
export class StreamConnection {
  readonly shared: TLSSocket;
  readonly encrypted = true;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, shared: TLSSocket) {
    this.#stream = stream;
    this.shared = shared;
  }

  get destroyed(): boolean {
    return isOver(this.#stream);
  }

  get writable(): boolean {
    return !isOver(this.#stream) && this.#stream.writable;
  }

  get remoteAddress(): string | undefined {
    return this.shared.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.shared.remotePort;
  }

  get localAddress(): string | undefined {
    return this.shared.localAddress;
  }

  get localPort(): number | undefined {
    return this.shared.localPort;
  }

  destroy(): this {
    reset(this.#stream);
    return this;
  }

  on(event: 'close', listener: () => void): this {
    this.#stream.on(event, listener);
    return this;
  }

  once(event: 'close', listener: () => void): this {
    this.#stream.once(event, listener);
    return this;
  }

  off(event: 'close', listener: () => void): this {
    this.#stream.off(event, listener);
    return this;
  }
}

/** Returns the TLS connection of a request. Streams of HTTP/2 share one. */
export const tlsConnectionOf = (socket: Socket): TLSSocket =>
  (socket as object) instanceof StreamConnection
    ? (socket as unknown as StreamConnection).shared
    : (socket as TLSSocket);

/** Whether both sides have ended the stream, or one side has reset it. */
export const isOver = (stream: ServerHttp2Stream): boolean => stream.destroyed || stream.closed;

const RESET = new Error('the server has reset the stream');

/**
 * Resets the stream with INTERNAL_ERROR, so that the client sees that its response is incomplete. Node.js's close() would end the stream
 * before the reset, and the response would seem complete.
 */
export const reset = (stream: ServerHttp2Stream): void => void stream.destroy(RESET);
