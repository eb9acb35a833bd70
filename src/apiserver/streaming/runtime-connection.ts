import type { IncomingMessage } from 'node:http';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { DuplexOptions } from 'node:stream';
import { WebSocket } from 'ws';
import { ApiError, internalError } from '../../machinery/status.ts';
import { request } from '../../platform/builtins/http.ts';
import { MAX_MESSAGE_BYTES } from './web-socket.ts';

/** The limit on the text of a refusal by the runtime, which the client gets. The rest is not read. Normal refusals are shorter. */
const MAX_REFUSAL_BYTES = 64 * 1024;

export interface UpgradeRequest {
  method: 'POST';
  /** Including `upgrade` but not `connection`. */
  headers: Readonly<Record<string, string | readonly string[]>>;
}

export interface UpgradedConnection {
  /** Delivers all data that the runtime sent before ending the connection, and does not report failed writes. */
  socket: Socket;
  headers: IncomingMessage['headers'];
}

export const spdyUpgrade = (protocols: readonly string[]): UpgradeRequest => ({
  method: 'POST',
  headers: { upgrade: 'SPDY/3.1', ...(protocols.length === 0 ? {} : { 'x-stream-protocol-version': protocols }) },
});

/**
 * Rejects with the runtime's refusal as an ApiError, with 500 InternalError if the runtime cannot be reached, and with the signal's reason
 * on abort.
 */
export function connectToRuntime(
  url: string,
  requested: UpgradeRequest,
  signal: AbortSignal,
): Promise<UpgradedConnection> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const headers = Object.entries(requested.headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : [...value],
    ]);
    const outgoing = request(url, {
      method: requested.method,
      headers: { connection: 'Upgrade', ...Object.fromEntries(headers) },
      createConnection: () => connectEagerly(url),
    });
    const abort = (): void => void outgoing.destroy();
    signal.addEventListener('abort', abort, { once: true });
    const settled = (): void => signal.removeEventListener('abort', abort);
    outgoing.once('error', (error) => {
      settled();
      reject(signal.aborted ? signal.reason : internalError(`unable to upgrade connection: ${error.message}`));
    });
    outgoing.once('upgrade', (response, socket: Socket, head) => {
      settled();
      if (head.length > 0) socket.unshift(head);
      resolve({ socket, headers: response.headers });
    });
    outgoing.once('response', (response) => {
      settled();
      refusalOf(response).then(reject, reject);
    });
    outgoing.end();
  });
}

/** Rejects like connectToRuntime(). The WebSocket is paused until a reader resumes it. */
export function connectWebSocket(url: string, protocol: string, signal: AbortSignal): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const webSocket = new WebSocket(url.replace(/^http/, 'ws'), protocol, {
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
      createConnection: () => connectEagerly(url),
    });
    const abort = (): void => webSocket.terminate();
    signal.addEventListener('abort', abort, { once: true });
    const settled = (): void => signal.removeEventListener('abort', abort);
    webSocket.on('error', (error) => {
      settled();
      reject(signal.aborted ? signal.reason : internalError(`unable to upgrade connection: ${error.message}`));
    });
    webSocket.once('open', () => {
      settled();
      webSocket.pause();
      resolve(webSocket);
    });
    webSocket.once('unexpected-response', (_request, response) => {
      settled();
      refusalOf(response).then(reject, reject);
    });
  });
}

/**
 * Connects a socket that does not lose data that the runtime sent before it closed the connection.
 *
 * The runtime closes the connection as soon as it has sent everything, even if more data is on its way to the runtime. Node.js would then
 * destroy the socket and discard the data that was received but not yet read: because a write fails, or because the reset arrives while a
 * slow reader has not read everything. So write errors are hidden from the socket (the end of the input reports the same), and the socket
 * receives no data before earlier data is read.
 */
function connectEagerly(url: string): Socket {
  const { hostname, port } = new URL(url);
  const options: TcpNetConnectOpts & DuplexOptions = {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port === '' ? 80 : port),
    noDelay: true,
    readableHighWaterMark: 1,
  };
  const socket = connect(options);
  socket.on('error', () => undefined);
  const write = socket._write.bind(socket);
  socket._write = (chunk, encoding, done) => write(chunk, encoding, () => done());
  const writev = socket._writev?.bind(socket);
  if (writev !== undefined) socket._writev = (chunks, done) => writev(chunks, () => done());
  return socket;
}

/** Resolves to the runtime's refusal. Closes the connection, which Node.js would keep for another request. */
async function refusalOf(response: IncomingMessage): Promise<ApiError> {
  const { socket } = response;
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    text += chunk;
    if (text.length > MAX_REFUSAL_BYTES) break;
  }
  socket.destroy();
  const { status } = internalError(`unable to upgrade connection: ${text.trim()}`);
  return new ApiError({ ...status, code: response.statusCode ?? 500 });
}
