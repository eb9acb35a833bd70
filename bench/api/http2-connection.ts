/**
 * A small HTTP/2 client over TLS. Like the client in connection.ts, it parses no more than it must. It gives the server the largest window
 * that HTTP/2 allows, and does not decode headers: a response whose status is not 200 is a failure.
 */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import {
  END_HEADERS,
  END_STREAM,
  FRAMES,
  frame,
  headerBlock,
  INITIAL_WINDOW_SIZE,
  settings,
  uint32,
} from '../../src/apiserver/http/http2/frames-fixture.ts';
import type { Answer, Target } from './connection.ts';

const MOST_WINDOW = 2 ** 31 - 1;
const FIRST_WINDOW = 65_535;
const HEAD_BYTES = 9;
/** The indexed field `:status: 200`. Source: RFC 7541, appendix A. */
const STATUS_200 = 0x88;

interface Receiving {
  pieces: Buffer[];
  isOk: boolean;
  done: PromiseWithResolvers<Answer>;
  listener?: (data: Buffer) => void;
}

export class Http2Connection {
  private readonly socket: TLSSocket;
  private rest: Buffer = Buffer.alloc(0);
  private next = 1;
  private readonly streams = new Map<number, Receiving>();

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (data: Buffer) => this.received(data));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      for (const { done } of this.streams.values()) done.reject(new Error('the server closed the connection'));
    });
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    socket.write(frame(FRAMES.settings, 0, 0, settings([INITIAL_WINDOW_SIZE, MOST_WINDOW])));
    socket.write(frame(FRAMES.windowUpdate, 0, 0, uint32(MOST_WINDOW - FIRST_WINDOW)));
  }

  static async open(target: Target): Promise<Http2Connection> {
    const socket = connect({ ...target, servername: 'localhost', ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    if (socket.alpnProtocol !== 'h2') throw new Error('the server has no HTTP/2');
    return new Http2Connection(socket);
  }

  /** Sends a request on a stream of its own. Rejects unless the status is 200. */
  send(method: string, path: string, body?: string, type = 'application/json'): Promise<Answer> {
    return this.begin(method, path, body, type).done.promise;
  }

  /** The answer to this GET request does not end. `listener` gets the bytes of its body. */
  stream(path: string, listener: (data: Buffer) => void): void {
    const receiving = this.begin('GET', path);
    receiving.listener = listener;
    receiving.done.promise.catch(() => undefined);
  }

  close(): void {
    this.socket.destroy();
  }

  private begin(method: string, path: string, body = '', type = ''): Receiving {
    if (this.socket.destroyed) throw new Error('the server has closed the connection');
    const stream = this.next;
    this.next += 2;
    const receiving: Receiving = { pieces: [], isOk: false, done: Promise.withResolvers() };
    this.streams.set(stream, receiving);
    const fields: [string, string][] = [
      [':method', method],
      [':scheme', 'https'],
      [':path', path],
      [':authority', 'localhost'],
      ['accept', 'application/json'],
    ];
    if (body !== '') fields.push(['content-type', type]);
    const flags = body === '' ? END_HEADERS | END_STREAM : END_HEADERS;
    this.socket.write(frame(FRAMES.headers, flags, stream, headerBlock(fields)));
    if (body !== '') this.socket.write(frame(FRAMES.data, END_STREAM, stream, Buffer.from(body)));
    return receiving;
  }

  private received(data: Buffer): void {
    this.rest = this.rest.length === 0 ? data : Buffer.concat([this.rest, data]);
    let at = 0;
    for (; this.rest.length >= at + HEAD_BYTES; ) {
      const end = at + HEAD_BYTES + this.rest.readUIntBE(at, 3);
      if (this.rest.length < end) break;
      this.frame(this.rest[at + 3] ?? 0, this.rest[at + 4] ?? 0, this.rest.readUInt32BE(at + 5), at + HEAD_BYTES, end);
      at = end;
    }
    this.rest = this.rest.subarray(at);
  }

  private frame(type: number, flags: number, stream: number, start: number, end: number): void {
    if (type === FRAMES.settings && (flags & 1) === 0) this.socket.write(frame(FRAMES.settings, 1, 0));
    const receiving = this.streams.get(stream);
    if (receiving === undefined) return;
    const payload = this.rest.subarray(start, end);
    if (type === FRAMES.headers) receiving.isOk = payload[0] === STATUS_200;
    if (type === FRAMES.data && payload.length > 0) {
      if (receiving.listener === undefined) receiving.pieces.push(Buffer.from(payload));
      else receiving.listener(payload);
    }
    const isReset = type === FRAMES.reset;
    if (!isReset && !((type === FRAMES.headers || type === FRAMES.data) && (flags & END_STREAM) !== 0)) return;
    this.streams.delete(stream);
    const body = Buffer.concat(receiving.pieces);
    if (receiving.isOk && !isReset) receiving.done.resolve({ status: 200, body });
    else receiving.done.reject(new Error(`a stream failed: ${body.toString()}`));
  }
}
