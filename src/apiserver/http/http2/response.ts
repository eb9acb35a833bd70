/**
 * A response on a stream of HTTP/2, with the part of the interface of ServerResponse that the handlers of requests use.
 *
 * Invariants:
 *  1. A response that is destroyed before its end resets the stream, so that the client sees that the response is incomplete.
 *  2. The close event comes when the stream is closed, and the client then sends no more of its body.
 */
import type { IncomingMessage } from 'node:http';
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { validateHeaderName, validateHeaderValue } from '../../../platform/builtins/http.ts';
import { isOver, reset } from './stream-connection.ts';

/** Source: RFC 9113, section 8.2.2. */
const OF_CONNECTIONS = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);
const WITHOUT_BODY = new Set([204, 205, 304]);

type Value = string | number | readonly string[];

export class Http2Response {
  statusCode = 200;
  headersSent = false;
  readonly shouldKeepAlive = true;
  readonly req: IncomingMessage;
  readonly socket: Socket;
  readonly #stream: ServerHttp2Stream;
  readonly #headers = new Map<string, Value>();
  /**
   * Whether end() was called. Node.js ends the stream of a HEAD request before the response ends, so the state of the stream does not show
   * whether end() was called.
   */
  #ended = false;

  constructor(stream: ServerHttp2Stream, request: IncomingMessage) {
    this.#stream = stream;
    this.req = request;
    this.socket = request.socket;
  }

  get destroyed(): boolean {
    return isOver(this.#stream);
  }

  get closed(): boolean {
    return isOver(this.#stream);
  }

  get writableEnded(): boolean {
    return this.#ended;
  }

  get writableFinished(): boolean {
    return this.#ended && this.#stream.writableFinished;
  }

  get writableLength(): number {
    return this.#stream.writableLength;
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  /** Throws, like ServerResponse, if the name or the value is not valid in HTTP. */
  setHeader(name: string, value: Value): this {
    validateHeaderName(name);
    for (const each of [value].flat()) validateHeaderValue(name, String(each));
    this.#headers.set(name.toLowerCase(), value);
    return this;
  }

  getHeader(name: string): Value | undefined {
    return this.#headers.get(name.toLowerCase());
  }

  removeHeader(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }

  appendHeader(name: string, value: string | readonly string[]): this {
    const before = this.getHeader(name);
    return this.setHeader(name, before === undefined ? value : [before, value].flat().map(String));
  }

  writeHead(code: number, headers: Readonly<Record<string, Value>> = {}): this {
    this.statusCode = code;
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    return this;
  }

  flushHeaders(): void {
    this.#sendHead(false);
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.destroyed) return false;
    this.#sendHead(false);
    return this.#hasBody ? this.#stream.write(chunk) : true;
  }

  end(chunk: string | Uint8Array = ''): this {
    if (this.destroyed || this.#ended) return this;
    this.#ended = true;
    const stream = this.#stream;
    // Tell the client not to send the rest of its body, but only after the end of the response has been sent.
    if (!this.req.complete) stream.once('finish', () => setImmediate(() => this.#refuseBody()));
    this.#sendHead(chunk.length === 0);
    if (!stream.writableEnded) stream.end(chunk);
    return this;
  }

  destroy(): this {
    reset(this.#stream);
    return this;
  }

  on(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.on(event, listener);
    return this;
  }

  once(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.once(event, listener);
    return this;
  }

  off(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.off(event, listener);
    return this;
  }

  get #hasBody(): boolean {
    return this.req.method !== 'HEAD' && !WITHOUT_BODY.has(this.statusCode);
  }

  #sendHead(isWhole: boolean): void {
    if (this.headersSent || this.destroyed) return;
    this.headersSent = true;
    const headers: OutgoingHttpHeaders = Object.create(null);
    headers[':status'] = this.statusCode;
    for (const [name, value] of this.#headers) {
      if (!OF_CONNECTIONS.has(name)) headers[name] = typeof value === 'object' ? [...value] : value;
    }
    this.#stream.respond(headers, { endStream: isWhole || !this.#hasBody });
    // The connection ends only after its other streams have ended. Source: Go's net/http.
    if (this.#headers.get('connection') === 'close') this.#stream.session?.close();
  }

  #refuseBody(): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    // The stream is already closed if the rest of the body has arrived meanwhile. Destroy it in any case: no code reads the rest, so
    // Node.js would wait forever for the end of the body.
    if (!stream.closed) stream.close(constants.NGHTTP2_NO_ERROR);
    stream.destroy();
  }
}
