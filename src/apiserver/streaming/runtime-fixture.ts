/** A server that serves streams like a container runtime. The test controls the runtime's side of each stream. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { constants, inflateSync } from 'node:zlib';
import { dataHead } from './spdy/frames.ts';

const RST_CANCEL = 5;

const controlFrame = (type: number, ...words: number[]): Buffer => {
  const bytes = Buffer.alloc(8 + words.length * 4);
  bytes.writeUInt32BE(0x8003_0000 + type);
  bytes.writeUInt32BE(words.length * 4, 4);
  for (const [index, word] of words.entries()) bytes.writeUInt32BE(word, 8 + index * 4);
  return bytes;
};

export interface RuntimePeer {
  request: IncomingMessage;
  socket: Socket;
  stream(type: string): Promise<PeerStream>;
  ping(id: number): void;
  pinged(id: number): Promise<void>;
  /** Ends the connection as a runtime does: resets every stream and then closes the connection. */
  close(): void;
  closed: Promise<void>;
}

export interface PeerStream {
  /** `fin` ends this side of the stream. `sent` is called when the connection has accepted the bytes, if there are any. */
  send(bytes: Uint8Array | string, fin?: boolean, sent?: () => void): void;
  reset(): void;
  /** Replies to the stream, which the fixture itself does unless startRuntime() was called with `silent`. */
  reply(): void;
  /** Resolves when the client has ended its side of the stream. */
  readonly received: Promise<Buffer>;
  receivedBytes(count: number): Promise<void>;
}

interface StreamState extends PeerStream {
  type: string;
  take(bytes: Uint8Array, fin: boolean): void;
}

export interface RuntimeFixture extends AsyncDisposable {
  url: string;
  next(): Promise<RuntimePeer>;
}

/** `refusal`: the text of a 403 response to every upgrade. With `silent`, streams get a reply only when the test calls reply(). */
export async function startRuntime(options: { refusal?: string; silent?: boolean } = {}): Promise<RuntimeFixture> {
  const waiting: ((peer: RuntimePeer) => void)[] = [];
  const arrived: RuntimePeer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on('upgrade', (request, duplex) => {
    const socket = duplex as Socket;
    sockets.add(socket);
    socket.on('error', () => undefined);
    // Like a runtime, end the connection when the client has ended its side.
    socket.on('end', () => socket.end());
    if (options.refusal !== undefined) {
      socket.end(`HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n${options.refusal}`);
      return;
    }
    const [protocol] = String(request.headers['x-stream-protocol-version'] ?? '').split(', ');
    const peer = peerOf(request, socket, options.silent === true);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\nX-Stream-Protocol-Version: ${protocol}\r\nSec-WebSocket-Protocol:\r\n\r\n`,
    );
    const take = waiting.shift();
    if (take === undefined) arrived.push(peer);
    else take(peer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/exec/token`,
    next: async () => arrived.shift() ?? new Promise((resolve) => waiting.push(resolve)),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function peerOf(request: IncomingMessage, socket: Socket, silent: boolean): RuntimePeer {
  const streams = new Map<number, StreamState>();
  const wanted = new Map<string, PromiseWithResolvers<PeerStream>>();
  const pings = new Map<number, PromiseWithResolvers<void>>();
  const entry = <K, V>(map: Map<K, PromiseWithResolvers<V>>, key: K): PromiseWithResolvers<V> => {
    const found = map.get(key) ?? Promise.withResolvers<V>();
    map.set(key, found);
    return found;
  };
  const opened = (id: number, type: string): void => {
    const stream = streamOf(id, type, socket);
    streams.set(id, stream);
    if (!silent) stream.reply();
    entry(wanted, type).resolve(stream);
  };
  let headerBlocks = Buffer.alloc(0);
  let headersRead = 0;
  const control: Record<number, (payload: Buffer) => void> = {
    1(payload) {
      headerBlocks = Buffer.concat([headerBlocks, payload.subarray(10)]);
      const headers = inflateStored(headerBlocks);
      const block = headers.subarray(headersRead);
      headersRead = headers.length;
      // The block has one pair: count, length of the name, name, length of the value, value.
      opened(payload.readUInt32BE(0), block.toString('utf8', 12 + block.readUInt32BE(4)));
    },
    6: (payload) => entry(pings, payload.readUInt32BE(0)).resolve(),
  };
  let held = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    for (;;) {
      const length = held.length < 8 ? Number.POSITIVE_INFINITY : 8 + held.readUIntBE(5, 3);
      if (held.length < length) return;
      const payload = held.subarray(8, length);
      const first = held.readUInt32BE(0);
      if (first >= 0x8000_0000) control[first & 0xffff]?.(payload);
      else streams.get(first)?.take(payload, held.readUInt8(4) === 1);
      held = held.subarray(length);
    }
  });
  return {
    request,
    socket,
    stream: (type) => entry(wanted, type).promise,
    ping: (id) => void socket.write(controlFrame(6, id)),
    pinged: (id) => entry(pings, id).promise,
    close() {
      for (const stream of streams.values()) stream.reset();
      socket.end();
    },
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
  };
}

function streamOf(id: number, type: string, socket: Socket): StreamState {
  const pieces: Uint8Array[] = [];
  const received = Promise.withResolvers<Buffer>();
  let total = 0;
  let counts: { count: number; resolve: () => void }[] = [];
  return {
    type,
    received: received.promise,
    take(bytes, fin) {
      pieces.push(bytes);
      total += bytes.length;
      for (const { count, resolve } of counts) if (total >= count) resolve();
      counts = counts.filter(({ count }) => total < count);
      if (fin) received.resolve(Buffer.concat(pieces));
    },
    receivedBytes: (count) =>
      new Promise((resolve) => {
        if (total >= count) resolve();
        else counts.push({ count, resolve });
      }),
    send(bytes, fin = false, sent = () => undefined) {
      const content = Buffer.from(bytes);
      socket.write(dataHead(id, content.length, fin));
      if (content.length > 0) socket.write(content, sent);
    },
    reset: () => void socket.write(controlFrame(3, id, RST_CANCEL)),
    reply: () => void socket.write(controlFrame(2, id)),
  };
}

/** Decodes a zlib stream of stored (uncompressed) blocks. They do not refer to the dictionary, so the head can be replaced. */
const inflateStored = (stream: Buffer): Buffer =>
  inflateSync(Buffer.concat([Buffer.from('7801', 'hex'), stream.subarray(6)]), {
    finishFlush: constants.Z_SYNC_FLUSH,
  });
