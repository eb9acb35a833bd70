/**
 * A client for ttrpc, the protocol that most of containerd's shims use instead of gRPC, over a Unix socket.
 *
 * A frame consists of a header of 10 bytes and the data. The header has the length of the data and the number of the stream (4 bytes each,
 * big-endian), the type and the flags (1 byte each). The data is a Request or a Response of containerd-shims.proto. Streams that the client
 * opens have odd numbers.
 * Source: github.com/containerd/ttrpc, PROTOCOL.md.
 */
import { connect } from 'node:net';
import { decodeMessage, encodeMessage } from '../cri/definitions.ts';

export interface Ttrpc {
  /** Resolves with the payload of the response. Rejects if the service returns an error, or if the connection ends before the response. */
  call(service: string, method: string, payload: Buffer): Promise<Buffer>;
  /** Pending calls reject. */
  close(): void;
}

interface Response {
  status: { code: number; message: string } | null;
  payload: Buffer;
}

const HEADER_BYTES = 10;
/** The limit of containerd's own client for the data in a frame. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const REQUEST = 1;
const RESPONSE = 2;

/** Returns before the connection is established. If no shim listens, all calls reject. */
export function connectTtrpc(path: string): Ttrpc {
  const socket = connect(path);
  const calls = new Map<number, { resolve(payload: Buffer): void; reject(error: Error): void }>();
  let nextStream = 1;
  let ended: Error | undefined;
  const end = (error: Error): void => {
    ended ??= error;
    socket.destroy();
    for (const { reject } of calls.values()) reject(ended);
    calls.clear();
  };
  const answer = (stream: number, { status, payload }: Response): void => {
    const call = calls.get(stream);
    calls.delete(stream);
    if (status !== null && status.code !== 0) call?.reject(new Error(status.message));
    else call?.resolve(payload);
  };
  let received = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= HEADER_BYTES) {
      const size = received.readUInt32BE(0);
      if (size > MAX_FRAME_BYTES) return end(new Error(`a frame of ${size} bytes is too large`));
      if (received.length < HEADER_BYTES + size) return;
      const [stream, type] = [received.readUInt32BE(4), received[8]];
      const data = received.subarray(HEADER_BYTES, HEADER_BYTES + size);
      received = received.subarray(HEADER_BYTES + size);
      if (type !== RESPONSE) continue;
      try {
        answer(stream, decodeMessage<Response>('containerd.shim.Response', data));
      } catch (error) {
        return end(error as Error);
      }
    }
  });
  socket.once('error', end);
  socket.once('close', () => end(new Error('the connection ended')));
  return {
    call: (service, method, payload) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(ended);
        const stream = nextStream;
        nextStream += 2;
        calls.set(stream, { resolve, reject });
        const data = encodeMessage('containerd.shim.Request', { service, method, payload });
        const header = Buffer.alloc(HEADER_BYTES);
        header.writeUInt32BE(data.length, 0);
        header.writeUInt32BE(stream, 4);
        header[8] = REQUEST;
        socket.write(Buffer.concat([header, data]));
      }),
    close: () => end(new Error('the connection was closed')),
  };
}
