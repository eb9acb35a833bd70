import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { encode, type OptAnswer, type Packet, RECURSION_DESIRED, type RecordType } from 'dns-packet';
import { withLength } from './tcp.ts';

export const question = (name: string, type: RecordType = 'A', additionals: Packet['additionals'] = []): Buffer =>
  encode({ type: 'query', id: 4711, flags: RECURSION_DESIRED, questions: [{ name, type }], additionals });

export const opt = (udpPayloadSize: number, more: Partial<OptAnswer> = {}): OptAnswer => ({
  type: 'OPT',
  name: '.',
  udpPayloadSize,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
  ...more,
});

/** Sends the message, and resolves with the response. Rejects if nothing listens, or after 10 s. */
export async function askUdp(port: number, message: Buffer, host = '127.0.0.1'): Promise<Buffer> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  try {
    const response = once(socket, 'message', { signal: AbortSignal.timeout(10_000) });
    socket.connect(port, host, () => socket.send(message));
    return (await response)[0] as Buffer;
  } finally {
    socket.close();
  }
}

/**
 * Sends the message, and resolves with the response. Rejects if nothing listens, or if the server closes the connection without a response.
 */
export async function askTcp(port: number, message: Buffer, host = '127.0.0.1'): Promise<Buffer> {
  const socket = connect(port, host);
  socket.write(withLength(message));
  let received = Buffer.alloc(0);
  try {
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer]);
      if (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) return received.subarray(2);
    }
  } finally {
    socket.destroy();
  }
  throw new Error('the connection was closed without a response');
}
