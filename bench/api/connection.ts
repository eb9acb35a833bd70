/** A small HTTP/1.1 client over TLS. The client shares two cores with the server, so it parses no more than it must. */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';

export interface Target {
  host: string;
  port: number;
  ca: Buffer;
  cert: Buffer;
  key: Buffer;
}

export interface Answer {
  status: number;
  body: Buffer;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LINE_END = Buffer.from('\r\n');

interface Receiving {
  status: number;
  pieces: Buffer[];
  left: number;
  chunked: boolean;
}

export class Connection {
  private readonly socket: TLSSocket;
  private rest: Buffer = Buffer.alloc(0);
  private receiving: Receiving | undefined;
  private waiting: PromiseWithResolvers<Answer> | undefined;

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (data: Buffer) => this.received(data));
    socket.on('close', () => this.waiting?.reject(new Error('the server closed the connection')));
    socket.on('error', (error) => this.waiting?.reject(error));
  }

  static async open(target: Target): Promise<Connection> {
    const socket = connect({ ...target, servername: 'localhost' });
    await once(socket, 'secureConnect');
    return new Connection(socket);
  }

  /** Must not be called before the answer to the last request has arrived. Rejects unless the status is below 300. */
  async send(method: string, path: string, body?: string, type = 'application/json'): Promise<Answer> {
    if (this.socket.destroyed) throw new Error('the server has closed the connection');
    this.waiting = Promise.withResolvers();
    this.socket.write(requestText(method, path, body, type));
    const answer = await this.waiting.promise;
    if (answer.status >= 300) throw new Error(`${method} ${path} got ${answer.status}: ${answer.body}`);
    return answer;
  }

  /** The answer to this GET request does not end. `listener` gets its raw bytes. */
  stream(path: string, listener: (data: Buffer) => void): void {
    this.socket.removeAllListeners('data');
    this.socket.on('data', listener);
    this.socket.write(requestText('GET', path));
  }

  close(): void {
    this.socket.removeAllListeners('error');
    this.socket.on('error', () => undefined);
    this.socket.destroy();
  }

  private received(data: Buffer): void {
    this.rest = this.rest.length === 0 ? data : Buffer.concat([this.rest, data]);
    this.receiving ??= this.readHead();
    const { receiving } = this;
    if (receiving === undefined || !this.readBody(receiving)) return;
    this.receiving = undefined;
    this.waiting?.resolve({ status: receiving.status, body: Buffer.concat(receiving.pieces) });
  }

  private readHead(): Receiving | undefined {
    const end = this.rest.indexOf(HEAD_END);
    if (end < 0) return undefined;
    const head = this.rest.toString('latin1', 0, end);
    this.rest = this.rest.subarray(end + HEAD_END.length);
    const left = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    return { status: Number(head.slice(9, 12)), pieces: [], left, chunked: /transfer-encoding: chunked/i.test(head) };
  }

  /** Reads the bytes that have arrived. Returns whether the body is complete. */
  private readBody(receiving: Receiving): boolean {
    for (;;) {
      if (receiving.left > 0) {
        const piece = this.rest.subarray(0, receiving.left);
        if (piece.length > 0) receiving.pieces.push(piece);
        receiving.left -= piece.length;
        this.rest = this.rest.subarray(piece.length);
        if (receiving.left > 0) return false;
        if (!receiving.chunked) return true;
      }
      if (!receiving.chunked) return true;
      // Each chunk but the first begins after the line end of the previous chunk.
      const start = receiving.pieces.length === 0 ? 0 : LINE_END.length;
      const end = this.rest.indexOf(LINE_END, start);
      if (end < 0) return false;
      const size = Number.parseInt(this.rest.toString('latin1', start, end), 16);
      if (size === 0 && this.rest.length < end + HEAD_END.length) return false;
      this.rest = this.rest.subarray(end + (size === 0 ? HEAD_END.length : LINE_END.length));
      receiving.left = size;
      if (size === 0) return true;
    }
  }
}

function requestText(method: string, path: string, body = '', type = 'application/json'): string {
  const length = body === '' ? '' : `content-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n${length}\r\n${body}`;
}
