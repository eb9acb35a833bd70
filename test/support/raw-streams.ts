/** Opens container streams without a client library, so that tests can send bytes that violate the protocol. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Socket } from 'node:net';
import { constants, deflateRawSync } from 'node:zlib';
import { parse } from 'yaml';

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
}

/** Returns the address of the API server and the administrator's credentials. Throws if the kubeconfig has no cluster or no user. */
export function adminOf(kubeconfig: string): { host: string; port: number; ca: Buffer; cert: Buffer; key: Buffer } {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig;
  const [cluster, user] = [clusters[0]?.cluster, users[0]?.user];
  if (cluster === undefined || user === undefined) throw new Error(`${kubeconfig} has no cluster or no user`);
  const bytes = (text: string): Buffer => Buffer.from(text, 'base64');
  const { hostname, port } = new URL(cluster.server);
  return {
    host: hostname,
    port: Number(port),
    ca: bytes(cluster['certificate-authority-data']),
    cert: bytes(user['client-certificate-data']),
    key: bytes(user['client-key-data']),
  };
}

export interface RawConnection {
  socket: Socket;
  closed: Promise<Buffer>;
}

/** Rejects unless the response has the status 101. */
export async function upgrade(
  kubeconfig: string,
  path: string,
  headers: Record<string, string | string[]>,
): Promise<RawConnection> {
  const method = headers.Upgrade === 'websocket' ? 'GET' : 'POST';
  const outgoing = request({ ...adminOf(kubeconfig), method, path, headers: { Connection: 'Upgrade', ...headers } });
  outgoing.end();
  const refused = once(outgoing, 'response').then(([response]) => {
    throw new Error(`${path} got the response ${(response as IncomingMessage).statusCode}`);
  });
  refused.catch(() => undefined);
  const [, upgraded, head] = (await Promise.race([once(outgoing, 'upgrade'), refused])) as [unknown, Socket, Buffer];
  const pieces: Buffer[] = [head];
  upgraded.on('data', (piece: Buffer) => pieces.push(piece));
  upgraded.on('error', () => undefined);
  // The server may reset a connection on which the client still sends. Unlike a promise of once(), `closed` does not reject then.
  const closed = new Promise<void>((resolve) => void upgraded.once('close', () => resolve()));
  return { socket: upgraded, closed: closed.then(() => Buffer.concat(pieces)) };
}

export const SPDY: Record<string, string> = {
  Upgrade: 'SPDY/3.1',
  'X-Stream-Protocol-Version': 'v4.channel.k8s.io',
};

/** Spaces are allowed between the digits. */
export const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

export function spdyControl(type: number, payload: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(0x8003_0000 + type);
  head.writeUInt32BE(payload.length, 4);
  head.writeUInt8(flags, 4);
  return Buffer.concat([head, payload]);
}

/** `length` is the length in bytes that the header of the frame contains, which may be wrong. */
export function spdyData(id: number, bytes: Buffer, length = bytes.length): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(id);
  head.writeUInt32BE(length, 4);
  return Buffer.concat([head, bytes]);
}

/** Opens the first stream of a connection. `block` contains the headers before compression. */
export const spdyStream = (id: number, block: Uint8Array): Buffer =>
  spdyControl(1, Buffer.concat([hex(`0000000${id} 00000000 0000 7820e3c6a7c2`), flushed(block)]));

export const flushed = (block: Uint8Array): Buffer => deflateRawSync(block, { finishFlush: constants.Z_SYNC_FLUSH });

export const spdyHeader = (name: string, value: string): Buffer => {
  const text = (each: string): Buffer => Buffer.concat([Buffer.of(0, 0, 0, each.length), Buffer.from(each)]);
  return Buffer.concat([hex('00000001'), text(name), text(value)]);
};

/** Returns the frames that open streams of the given types, numbered 1, 3, 5 and so on, at the start of a connection. */
export const spdyStreams = (...types: string[]): Buffer =>
  Buffer.concat(
    types.map((type, index) => {
      const block = spdyHeader('streamtype', type);
      if (index === 0) return spdyStream(1, block);
      return spdyControl(1, Buffer.concat([hex(`0000000${index * 2 + 1} 00000000 0000`), flushed(block)]));
    }),
  );

/** The GOAWAY frame with which the server reports that the client has violated the protocol. */
export const PROTOCOL_ERROR: Buffer = spdyControl(7, hex('00000000 00000001'));
