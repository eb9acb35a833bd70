/** A request on a stream of HTTP/2, as the IncomingMessage that the handlers of requests expect. */

import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { IncomingMessage } from '../../../platform/builtins/http.ts';
import { StreamConnection } from './stream-connection.ts';

class Http2Request extends IncomingMessage {
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, connection: TLSSocket) {
    super(new StreamConnection(stream, connection) as unknown as Socket);
    this.#stream = stream;
    if (stream.endAfterHeaders) {
      this.complete = true;
      this.push(null);
      stream.resume();
      return;
    }
    stream.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) stream.pause();
    });
    stream.pause();
    stream.once('end', () => {
      // The stream also emits `end` when it is reset.
      this.complete = !stream.aborted;
      if (this.complete) this.push(null);
    });
    // Node.js would keep a stream that is reset without an error until its body is read, and the handler may never read it.
    stream.once('aborted', () => setImmediate(() => stream.destroy()));
    stream.once('close', () => this.destroy());
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.complete) {
      this.emit('aborted');
      this.socket.destroy();
    }
    done(error);
  }
}

/** Like rawHeaders, headers and headersDistinct of an IncomingMessage. */
export interface PlainHeaders {
  /** Alternating names and values. */
  raw: string[];
  joined: IncomingHttpHeaders;
  distinct: NodeJS.Dict<string[]>;
}

/**
 * Returns the headers that the request would have in HTTP/1.1. A body of unknown length has Transfer-Encoding, by which the handlers
 * recognize it. `raw`: the names and values as the client sent them, alternately.
 * Source: RFC 9113, sections 8.2.3 and 8.3.1.
 */
export function plainHeaders(headers: IncomingHttpHeaders, raw: readonly string[], hasBody: boolean): PlainHeaders {
  const joined: IncomingHttpHeaders = Object.create(null);
  const distinct: NodeJS.Dict<string[]> = Object.create(null);
  const plain: string[] = [];
  const add = (name: string, value: string): void => {
    plain.push(name, value);
    const values = distinct[name];
    if (values === undefined) distinct[name] = [value];
    else values.push(value);
  };
  const { ':authority': host } = headers;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? '';
    if (name.startsWith(':') || name === 'cookie' || (name === 'host' && host !== undefined)) continue;
    add(name, raw[at + 1] ?? '');
    joined[name] = headers[name];
  }
  const set = (name: string, value: string): void => {
    add(name, value);
    joined[name] = value;
  };
  if (host !== undefined) set('host', host);
  if (headers.cookie !== undefined) set('cookie', headers.cookie);
  if (hasBody && headers['content-length'] === undefined) set('transfer-encoding', 'chunked');
  return { raw: plain, joined, distinct };
}

export function requestOf(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  raw: readonly string[],
  connection: TLSSocket,
): IncomingMessage {
  const request = new Http2Request(stream, connection);
  const plain = plainHeaders(headers, raw, !stream.endAfterHeaders);
  request.httpVersion = '2.0';
  request.httpVersionMajor = 2;
  request.httpVersionMinor = 0;
  request.method = headers[':method'] ?? '';
  request.url = headers[':path'] ?? '';
  request.rawHeaders = plain.raw;
  request.headers = plain.joined;
  request.headersDistinct = plain.distinct;
  return request;
}
