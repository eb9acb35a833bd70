/** An upgraded connection to the URL where the node serves a stream. */
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { DuplexOptions } from 'node:stream';
import { WebSocket } from 'ws';
import { ApiError, internalError } from '../../machinery/status.ts';
import { MAX_MESSAGE_BYTES } from './web-socket.ts';

/** The text of a refusal is shown to the client; no honest one is longer. */
const MAX_REFUSAL_BYTES = 64 * 1024;

export interface UpgradeRequest {
  method: 'POST';
  /** With `upgrade`. */
  headers: Readonly<Record<string, string | readonly string[]>>;
}

export interface UpgradedConnection {
  /** Nothing of it has been read. Whatever ends it, what the runtime sent before is read first; a failed write says nothing. */
  socket: Socket;
  /** Of the answer 101. */
  headers: IncomingMessage['headers'];
}

export const spdyUpgrade = (protocols: readonly string[]): UpgradeRequest => ({
  method: 'POST',
  headers: { upgrade: 'SPDY/3.1', ...(protocols.length === 0 ? {} : { 'x-stream-protocol-version': protocols }) },
});

/** Rejects with an ApiError: what the runtime answered instead, or 500 InternalError where it cannot be reached. */
export function connectToRuntime(url: string, asked: UpgradeRequest, signal: AbortSignal): Promise<UpgradedConnection> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const headers = Object.entries(asked.headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : [...value],
    ]);
    const outgoing = request(url, {
      method: asked.method,
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

/** As connectToRuntime(), for a subprotocol of WebSocket. The messages are paused until somebody takes them. */
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
 * The runtime closes its side as soon as it has said everything, also while something is on its way to it. Node.js would
 * then destroy the socket, with all that it has received and not yet read: because a write fails, or because the reset is
 * noticed while a slow reader keeps data waiting. So failed writes are kept from the socket (the end of what is read tells
 * the same), and nothing is received before what came earlier is read.
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

/** Reads why the runtime refuses the stream, and closes the connection: Node.js would keep it for another request. */
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
