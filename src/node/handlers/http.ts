/**
 * Sends the HTTP GET requests of probes and hooks: each on a separate connection, which is closed afterwards, and without a proxy.
 * Certificates are not verified, and redirects are followed only on the same host.
 * Source: pkg/probe/http of v1.33 (behavior and texts).
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { request as requestHttp } from '../../platform/builtins/http.ts';
import {
  DeadlineExceeded,
  dialFailure,
  type Ends,
  HandlerFailure,
  joinHostPort,
  type SocketError,
  transferFailure,
} from './failure.ts';
import { type Address, addressOf, redirected } from './http-address.ts';
import { requestHeaders } from './http-headers.ts';

export interface HttpRequest {
  scheme: 'http' | 'https';
  host: string;
  port: number;
  path: string;
  headers: readonly { name: string; value: string }[];
  /** Used if `headers` contains no User-Agent. */
  userAgent: string;
}

export interface HttpAnswer {
  status: number;
  body: string;
}

/** The server at an https address did not respond with TLS, probably because it speaks plain HTTP. */
export class PlainHttpFailure extends HandlerFailure {}

const MAX_BODY_BYTES = 10 * 1024;
/** Including the one after the last redirect that is followed. */
const MAX_REQUESTS = 10;
/** The default of Node.js, 16 KiB, is far below the 10 MiB that Go's client accepts. */
const MAX_HEADER_BYTES = 1024 * 1024;

/**
 * Sends the request and follows redirects. Resolves to the last response, whatever its status, including a redirect to another host.
 * Rejects with a HandlerFailure if there is no valid response, the request or a redirect is invalid, the tenth response is another redirect
 * on the same host, or the signal aborts with DeadlineExceeded; with the signal's reason on another abort; and with other errors if the
 * node caused them.
 */
export async function httpGet(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
  let address = addressOf(request);
  let headers = requestHeaders(request, address.host);
  for (let requests = 1; ; requests++) {
    const { status, location = '', body } = await getOnce(address, headers, signal);
    const next = redirected(address, status, location);
    if (next === undefined) return { status, body };
    if (requests === MAX_REQUESTS) throw new HandlerFailure(`Get "${location}": stopped after 10 redirects`);
    // The configured Host header stays in effect only for relative redirects.
    if (!next.relative) headers = ['Host', next.address.host, ...headers.slice(2)];
    address = next.address;
  }
}

interface Answer extends HttpAnswer {
  location: string | undefined;
}

function getOnce(address: Address, headers: string[], signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  const connection = open(address);
  const request = begin(address, headers, connection.socket);
  return new Promise((resolve, reject) => {
    let answering = false;
    let settled = false;
    const settle = (outcome: () => void): void => {
      if (settled) return;
      settled = true;
      signal.removeEventListener('abort', abort);
      request.destroy();
      outcome();
    };
    const fail = (error: SocketError): void =>
      settle(() => reject(failureOf(error, address, connection.ends(), answering)));
    const abort = (): void =>
      settle(() => reject(signal.reason instanceof DeadlineExceeded ? lateFailure(address, answering) : signal.reason));
    signal.addEventListener('abort', abort, { once: true });
    request.on('error', fail);
    request.once('close', () => fail(new Error('closed without an answer')));
    request.once('response', (incoming) => {
      answering = true;
      const { statusCode: status = 0, headers } = incoming;
      readBody(incoming, (body) => settle(() => resolve({ status, location: headers.location, body })), fail);
    });
  });
}

interface OpenConnection {
  socket: Socket;
  /** Undefined until the connection is open. */
  ends(): Ends | undefined;
}

let anyCertificate: SecureContext | undefined;

function open({ scheme, hostname, port }: Address): OpenConnection {
  const socket = scheme === 'http' ? connectTcp({ host: hostname, port }) : openTls(hostname, port);
  let ends: Ends | undefined;
  socket.once('connect', () => {
    const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket;
    ends = { local: joinHostPort(localAddress, localPort), remote: joinHostPort(remoteAddress, remotePort) };
  });
  return { socket, ends: () => ends };
}

function openTls(host: string, port: number): Socket {
  // The certificate is not verified, so no CA certificates are loaded, and its key may have any size. DHE cipher suites are excluded, as in
  // Go: the server in the container chooses the size of the Diffie-Hellman parameters, and a computation with 10,000 bits would block the
  // event loop for a second.
  anyCertificate ??= createSecureContext({ ca: [], ciphers: 'DEFAULT:!DHE:@SECLEVEL=0' });
  const servername = isIP(host) === 0 ? host : '';
  return connectTls({ host, port, servername, secureContext: anyCertificate, rejectUnauthorized: false });
}

function begin(address: Address, headers: string[], socket: Socket): ClientRequest {
  const options: RequestOptions = {
    path: address.target,
    headers,
    setHost: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Without this function, the default agent of Node.js would open the connection, and keep it open after the response.
    createConnection: () => socket,
  };
  try {
    const request = address.scheme === 'https' ? requestHttps(options) : requestHttp(options);
    request.end();
    return request;
  } catch (error) {
    socket.destroy();
    throw new HandlerFailure(`Get "${address.url}": net/http: ${headerFault(error as NodeJS.ErrnoException)}`);
  }
}

/** Returns Go's message. The name of the header is in brackets in the message of Node.js. */
function headerFault({ code, message }: NodeJS.ErrnoException): string {
  const name = JSON.stringify(/\["(.*)"\]/s.exec(message)?.[1] ?? '');
  if (code === 'ERR_INVALID_CHAR') return `invalid header field value for ${name}`;
  return code === 'ERR_INVALID_HTTP_TOKEN' ? `invalid header field name ${name}` : message;
}

function readBody(incoming: IncomingMessage, done: (body: string) => void, fail: (error: Error) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = (): void => done(Buffer.concat(chunks).toString('utf8', 0, Math.min(length, MAX_BODY_BYTES)));
  incoming.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= MAX_BODY_BYTES) finish();
  });
  incoming.once('end', finish);
  incoming.on('error', fail);
}

const lateFailure = ({ url }: Address, answering: boolean): HandlerFailure =>
  new HandlerFailure(
    answering
      ? 'context deadline exceeded (Client.Timeout or context cancellation while reading body)'
      : `Get "${url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
  );

/** OpenSSL's reasons for a response that is not a TLS record. */
const NO_TLS = new Set(['wrong version number', 'packet length too long']);

/** The code of a TLS error is EPROTO if a write was pending, otherwise it begins with ERR_SSL_. */
const tlsReason = ({ code = '', message }: NodeJS.ErrnoException): string | undefined =>
  code === 'EPROTO' || code.startsWith('ERR_SSL_') ? /SSL routines:[^:]*:([^:]*)/.exec(message)?.[1] : undefined;

function failureOf(
  error: SocketError & { rawPacket?: Buffer },
  { url, hostname, port }: Address,
  ends: Ends | undefined,
  answering: boolean,
): Error {
  const failure = (reason: string): HandlerFailure => new HandlerFailure(`Get "${url}": ${reason}`);
  if (ends === undefined) {
    const reason = dialFailure(error, hostname, port);
    return reason === undefined ? error : failure(reason);
  }
  if (answering) return new HandlerFailure(transferFailure(error, ends) ?? 'unexpected EOF');
  const tls = tlsReason(error);
  if (tls !== undefined && NO_TLS.has(tls))
    return new PlainHttpFailure(`Get "${url}": http: server gave HTTP response to HTTPS client`);
  if (tls !== undefined) return failure(`tls: ${tls}`);
  if (error.code?.startsWith('HPE_') === true) {
    const line = error.rawPacket?.toString('latin1').split(/\r?\n/, 1)[0] ?? '';
    return failure(`net/http: HTTP/1.x transport connection broken: malformed HTTP response ${JSON.stringify(line)}`);
  }
  return failure(transferFailure(error, ends) ?? 'EOF');
}
