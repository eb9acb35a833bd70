import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { withLength } from './tcp.ts';

/**
 * Sends the query with a random ID. Resolves with a response with this ID that `accepts` accepts. Over UDP, other messages are ignored;
 * over TCP, another message rejects. Also rejects when the signal aborts, and if the server cannot be reached.
 */
export type Ask = (query: Buffer, server: Server, accepts: Accepts, signal: AbortSignal) => Promise<Buffer>;

export interface Server {
  address: string;
  port: number;
}
export type Accepts = (message: Buffer) => boolean;

/** Each query has a port of its own and a random ID, so that responses are hard to forge. */
export const askUdp: Ask = (query, server, accepts, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4');
    const own = withRandomId(query);
    let hasEnded = false;
    const end = (settle: () => void): void => {
      if (hasEnded) return;
      hasEnded = true;
      signal.removeEventListener('abort', aborted);
      socket.close();
      settle();
    };
    const aborted = (): void => end(() => reject(signal.reason));
    signal.addEventListener('abort', aborted, { once: true });
    const failed = (error: Error): void => end(() => reject(error));
    socket.on('error', failed);
    socket.on('message', (message) => {
      if (message.length >= 2 && message.readUInt16BE(0) === own.readUInt16BE(0) && accepts(message))
        end(() => resolve(message));
    });
    // Contrary to its types, Node.js passes the failure of connect() to the callback, for example if there is no route to the server. In
    // that case, send() would throw.
    socket.connect(server.port, server.address, ((error?: Error) => {
      if (error) failed(error);
      else if (!hasEnded) socket.send(own);
    }) as () => void);
  });

export const askTcp: Ask = (query, server, accepts, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect({ host: server.address, port: server.port });
    const own = withRandomId(query);
    let received = Buffer.alloc(0);
    const aborted = (): void => void socket.destroy(signal.reason);
    signal.addEventListener('abort', aborted, { once: true });
    socket.on('connect', () => socket.write(withLength(own)));
    socket.on('error', reject);
    socket.on('close', () => {
      signal.removeEventListener('abort', aborted);
      reject(new Error(`${server.address} closed the connection`));
    });
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      const message = received.subarray(2, 2 + received.readUInt16BE(0));
      if (message.length >= 2 && message.readUInt16BE(0) === own.readUInt16BE(0) && accepts(message)) resolve(message);
      else reject(new Error(`${server.address} returned another message`));
      // end() would leave the connection open if the server does not close its half.
      socket.destroy();
    });
  });

function withRandomId(query: Buffer): Buffer {
  const own = Buffer.from(query);
  own.writeUInt16BE(randomInt(0x10000), 0);
  return own;
}
