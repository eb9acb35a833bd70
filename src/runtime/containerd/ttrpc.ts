/**
 * A client of ttrpc, which containerd's shims speak instead of gRPC: requests and responses in frames on a Unix socket. npm has no
 * library for it.
 *
 * A frame is a header of 10 bytes (length of the data and number of the stream, 4 bytes each, big endian; type; flags) and the data,
 * a Request or a Response of containerd-shims.proto. Streams that the client opens have odd numbers.
 * Source: github.com/containerd/ttrpc, PROTOCOL.md.
 */
import { connect } from 'node:net';
import { decodeMessage, encodeMessage } from '../cri/definitions.ts';

export interface Ttrpc {
  /** Resolves with the bytes of the response. Rejects if the service refuses the call, or the connection ends first. */
  call(service: string, method: string, payload: Buffer): Promise<Buffer>;
  /** Closes the connection and fails its pending calls. */
  close(): void;
}

interface Response {
  status: { code: number; message: string } | null;
  payload: Buffer;
}

const HEADER_BYTES = 10;
/** Maximum size of a frame's data, as in containerd's own client. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const REQUEST = 1;
const RESPONSE = 2;

/** `path`: of the Unix socket. Returns before it is connected; if nothing listens there, the calls reject. */
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
