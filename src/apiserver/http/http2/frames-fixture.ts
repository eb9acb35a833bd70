/** A client of HTTP/2 that sends any frames, including those that no library would send. */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import type { TestServer } from '../../server-fixture.ts';

/** Source: RFC 9113, section 6. */
export const FRAMES = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const END_STREAM = 1;
export const END_HEADERS = 4;
const HEAD_BYTES = 9;

export interface Frame {
  type: number;
  flags: number;
  stream: number;
  payload: Buffer;
}

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export const settings = (...pairs: [identifier: number, value: number][]): Buffer =>
  Buffer.concat(pairs.map(([identifier, value]) => Buffer.concat([Buffer.of(0, identifier), uint32(value)])));

export const INITIAL_WINDOW_SIZE = 4;

/** Returns a string literal without Huffman coding. Source: RFC 7541, sections 5.1 and 5.2. */
function text(value: string): Buffer {
  const bytes = [];
  let left = value.length - 127;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  const length = value.length < 127 ? [value.length] : [127, ...bytes, left];
  return Buffer.concat([Buffer.from(length), Buffer.from(value, 'latin1')]);
}

/** Returns literal fields. `indexed`: whether the server adds them to its table. Source: RFC 7541, section 6.2. */
export const headerBlock = (fields: readonly [name: string, value: string][], indexed = false): Buffer =>
  Buffer.concat(fields.map(([name, value]) => Buffer.concat([Buffer.of(indexed ? 0x40 : 0), text(name), text(value)])));

export const get = (path: string, ...more: [string, string][]): [string, string][] => [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', path],
  [':authority', 'localhost'],
  ...more,
];

export interface FrameClient {
  socket: TLSSocket;
  /** Resolves to the first frame of the type, which may have been received before the call. Rejects if the connection ends. */
  until(type: number, stream?: number): Promise<Frame>;
  frames: Frame[];
  closed: Promise<unknown>;
}

export interface FrameClientOptions {
  settings?: Buffer;
  anonymous?: boolean;
  /** The default is the first address of the server. */
  host?: string;
  /** Whether the client keeps its side of the connection open when the server has ended its own. */
  allowHalfOpen?: boolean;
}

/** Connects as the administrator, or without a certificate if `anonymous` is true, and sends the preface and the settings. */
export async function frameClient(at: TestServer, options: FrameClientOptions = {}) {
  const { certificate: cert, key } = at.pki.admin;
  const { port } = at.server;
  const { host = at.server.host, allowHalfOpen = false } = options;
  const identity = options.anonymous === true ? {} : { cert, key };
  const more = { ca: at.pki.caCertificate, servername: 'localhost', allowHalfOpen };
  const socket = connect({ host, port, ...more, ALPNProtocols: ['h2'], ...identity });
  await once(socket, 'secureConnect');
  socket.setNoDelay(true).on('error', () => undefined);
  const frames: Frame[] = [];
  const received = new EventTarget();
  const announce = (): boolean => received.dispatchEvent(new Event('frame'));
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    while (rest.length >= HEAD_BYTES && rest.length >= HEAD_BYTES + rest.readUIntBE(0, 3)) {
      const end = HEAD_BYTES + rest.readUIntBE(0, 3);
      const [type = 0, flags = 0] = rest.subarray(3, 5);
      frames.push({ type, flags, stream: rest.readUInt32BE(5), payload: rest.subarray(HEAD_BYTES, end) });
      rest = rest.subarray(end);
    }
    announce();
  });
  // Unlike this promise, once() of node:events rejects if an error event comes first.
  const closed = new Promise((resolve) => socket.once('close', resolve)).then(announce);
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(frame(FRAMES.settings, 0, 0, options.settings));
  const client: FrameClient = {
    socket,
    frames,
    closed,
    async until(type, stream) {
      for (;;) {
        const found = frames.find((each) => each.type === type && (stream === undefined || each.stream === stream));
        if (found !== undefined) return found;
        if (socket.closed) throw new Error('the connection has ended');
        await once(received, 'frame');
      }
    },
  };
  return client;
}
