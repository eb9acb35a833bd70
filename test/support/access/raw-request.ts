/** Sends requests byte by byte over TLS, so that they can have paths and headers that client libraries do not send. */
import { connect } from 'node:tls';

export interface RawRequest {
  method: string;
  /** With the query. */
  target: string;
  /** A name may occur several times. */
  headers: readonly (readonly [name: string, value: string])[];
  body: string;
}

export interface Address {
  host: string;
  port: number;
  ca: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
}

export interface RawResponse {
  code: number;
  /** Without headers whose values differ from response to response. */
  head: string[];
  body: string;
}

const VARYING = /^(date|audit-id):/i;

/**
 * Resolves when the server has closed the connection; for a watch, a followed log and a protocol switch, when the head has arrived. The
 * code is 0 if the server closes the connection without a response.
 */
export async function sendRaw(address: Address, { method, target, headers, body }: RawRequest): Promise<RawResponse> {
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: fuzz', ...headers.map(([name, value]) => `${name}: ${value}`)];
  const socket = connect(address);
  let text = '';
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket
    .on('error', () => undefined)
    .on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const isEndless =
        /^HTTP\/1\.1 101/.test(text) || (/^HTTP\/1\.1 2/.test(text) && /\/watch\/|[?&](watch|follow)=/.test(target));
      if (isEndless && text.includes('\r\n\r\n')) socket.destroy();
    });
  socket.write(
    `${lines.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n${body}`,
    'latin1',
  );
  await closed;
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [status = '', ...fields] = head.split('\r\n');
  return {
    code: Number(/^HTTP\/1\.1 (\d{3})/.exec(status)?.[1] ?? 0),
    head: [status, ...fields.filter((field) => !VARYING.test(field))],
    body: rest.join('\r\n\r\n'),
  };
}
