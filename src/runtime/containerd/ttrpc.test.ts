/** Uses a server on a real Unix socket, which writes the frames that a test defines. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../cri/definitions.ts';
import { connectTtrpc, type Ttrpc } from './ttrpc.ts';

interface Request {
  service: string;
  method: string;
  payload: Buffer;
}
/** A frame from the client: all fields of its header except the length, and the decoded data. */
interface Received {
  stream: number;
  type: number | undefined;
  flags: number | undefined;
  request: Request;
}

let folder: string;
let server: Server;
let sockets: Socket[];
let client: Ttrpc;
let received: Received[];
let handle: (frame: Received, socket: Socket) => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-ttrpc-'));
  [sockets, received, handle] = [[], [], () => undefined];
  server = createServer((socket) => {
    sockets.push(socket);
    let rest = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 10 && rest.length >= 10 + rest.readUInt32BE(0)) {
        const end = 10 + rest.readUInt32BE(0);
        const request = decodeMessage<Request>('containerd.shim.Request', rest.subarray(10, end));
        const frame = { stream: rest.readUInt32BE(4), type: rest[8], flags: rest[9], request };
        rest = rest.subarray(end);
        received.push(frame);
        handle(frame, socket);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(join(folder, 's'), resolve));
  client = connectTtrpc(join(folder, 's'));
});
afterEach(() => {
  client.close();
  for (const socket of sockets) socket.destroy();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const RESPONSE = 2;
function frameOf(stream: number, data: Buffer, type = RESPONSE): Buffer {
  const header = Buffer.alloc(10);
  header.writeUInt32BE(data.length, 0);
  header.writeUInt32BE(stream, 4);
  header[8] = type;
  return Buffer.concat([header, data]);
}
const success = (text: string): Buffer => encodeMessage('containerd.shim.Response', { payload: Buffer.from(text) });
const failed = (code: number): Buffer =>
  encodeMessage('containerd.shim.Response', { status: { code, message: 'no such task' }, payload: Buffer.from('p') });
const call = (text = 'in'): Promise<string> => client.call('Task', 'State', Buffer.from(text)).then(String);

test('a call sends one request frame, on a stream with an odd number, and resolves with the payload of the response', async () => {
  handle = ({ stream }, socket) => socket.write(frameOf(stream, success('out')));
  expect(await call()).toBe('out');
  await call('again');
  const request = { service: 'Task', method: 'State', payload: Buffer.from('in') };
  expect(received).toMatchObject([
    { stream: 1, type: 1, flags: 0, request },
    { stream: 3, type: 1, flags: 0, request: { ...request, payload: Buffer.from('again') } },
  ]);
});

test('responses that arrive in another order, in one chunk, belong to the calls with their stream numbers', async () => {
  handle = ({ stream }, socket) => {
    if (stream === 3) socket.write(Buffer.concat([frameOf(3, success('second')), frameOf(1, success('first'))]));
  };
  expect(await Promise.all([call(), call()])).toEqual(['first', 'second']);
});

test('a response is complete although its first bytes arrive with the previous response', async () => {
  // The server sends the first bytes of a response together with the previous response, and the remaining bytes only after the request. The
  // client has therefore read the first bytes before the server sends the remaining bytes.
  const early = [4, 9, 10, 13];
  let sent = 0;
  handle = ({ stream }, socket) => {
    const next = frameOf(stream + 2, success(`text ${stream + 2}`));
    const count = early.shift() ?? 0;
    socket.write(Buffer.concat([frameOf(stream, success(`text ${stream}`)).subarray(sent), next.subarray(0, count)]));
    sent = count;
  };
  for (const stream of [1, 3, 5, 7, 9]) expect(await call()).toBe(`text ${stream}`);
});

test('a call whose response has an error code rejects with its message; the code 0 is success', async () => {
  handle = ({ stream }, socket) => socket.write(frameOf(stream, failed(stream === 1 ? 5 : 0)));
  await expect(call()).rejects.toThrow('no such task');
  expect(await call()).toBe('p');
});

test('frames of another type, and responses on unknown streams, are ignored', async () => {
  handle = ({ stream }, socket) => {
    for (const type of [1, 3]) socket.write(frameOf(stream, success('wrong'), type));
    socket.write(
      Buffer.concat([frameOf(99, success('wrong')), frameOf(99, failed(5)), frameOf(stream, success('right'))]),
    );
  };
  expect(await call()).toBe('right');
});

test('if the server ends the connection, pending and later calls reject', async () => {
  handle = (_, socket) => socket.destroy();
  await expect(Promise.all([call(), call()])).rejects.toThrow('the connection ended');
  await expect(call()).rejects.toThrow('the connection ended');
});

test('close() ends the connection, and pending and later calls reject', async () => {
  const closed = new Promise<void>((resolve) => {
    handle = (_, socket) => {
      socket.once('close', () => resolve());
      client.close();
    };
  });
  await expect(call()).rejects.toThrow('the connection was closed');
  await expect(call()).rejects.toThrow('the connection was closed');
  await closed;
});

test('calls to a socket that does not exist reject', async () => {
  const lost = connectTtrpc(join(folder, 'none'));
  await expect(lost.call('Task', 'State', Buffer.alloc(0))).rejects.toThrow('ENOENT');
  await expect(lost.call('Task', 'State', Buffer.alloc(0))).rejects.toThrow('ENOENT');
});

test('a frame that cannot be decoded ends the connection', async () => {
  handle = ({ stream }, socket) => socket.write(frameOf(stream, Buffer.from([0xff, 0xff])));
  await expect(call()).rejects.toThrow(/./);
  handle = ({ stream }, socket) => socket.write(frameOf(stream, success('late')));
  await expect(call()).rejects.toThrow(/./);
  expect(received).toHaveLength(1);
});

test('a frame of 4 MiB is read', async () => {
  const text = 'a'.repeat(4 * 1024 * 1024 - 5);
  expect(success(text)).toHaveLength(4 * 1024 * 1024);
  handle = ({ stream }, socket) => socket.write(frameOf(stream, success(text)));
  expect(await call()).toHaveLength(text.length);
});

test('a frame of more than 4 MiB ends the connection before its data has arrived', async () => {
  handle = (_, socket) => {
    const header = Buffer.alloc(10);
    header.writeUInt32BE(4 * 1024 * 1024 + 1, 0);
    socket.write(header);
  };
  await expect(call()).rejects.toThrow('a frame of 4194305 bytes is too large');
});
