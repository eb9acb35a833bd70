/** The server's side of a WebSocket handshake. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { badRequest } from '../../machinery/status.ts';

/** The bound that upstream's server has (golang.org/x/net/websocket). */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** How long a client may take to answer a close. */
const CLOSE_TIMEOUT_MILLIS = 1_000;

/** The subprotocols that the client offers, best first. */
export const offeredProtocols = (request: IncomingMessage): string[] =>
  (request.headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** Subprotocols that are put through message by message. Source: v1.33 remotecommand and portforward of the kubelet. */
const OLDER_PROTOCOLS = {
  command: ['v4.base64.channel.k8s.io', 'channel.k8s.io', 'base64.channel.k8s.io'],
  ports: ['v4.channel.k8s.io', 'v4.base64.channel.k8s.io'],
};

/** The one that the runtime is asked for; a client that names none means the binary one. Throws 400 BadRequest. */
export function olderProtocol(offered: readonly string[], command: boolean): string {
  const known = command ? OLDER_PROTOCOLS.command : OLDER_PROTOCOLS.ports;
  const chosen = offered.length === 0 ? (command ? 'channel.k8s.io' : 'v4.channel.k8s.io') : undefined;
  const protocol = chosen ?? offered.find((name) => known.includes(name));
  if (protocol !== undefined) return protocol;
  throw badRequest(
    `unable to negotiate protocol: client supports [${offered.join(' ')}], server supports [${known.join(' ')}]`,
  );
}

const PROTOCOL_ERROR = 1002;
/** Of the reason in a close frame (RFC 6455, section 5.5). */
const MAX_REASON_BYTES = 123;

/** Ends the connection of a client that broke a protocol within its messages. */
export const closeForProtocol = (webSocket: WebSocket, message: string): void =>
  webSocket.close(PROTOCOL_ERROR, Buffer.from(message).subarray(0, MAX_REASON_BYTES));

/** Throws 400 BadRequest where acceptWebSocket() would not answer with 101. */
export function checkHandshake({ method, headers }: IncomingMessage): void {
  if (method !== 'GET') throw badRequest(`a WebSocket is asked for with GET, not ${method}`);
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) {
    throw badRequest('the header Sec-WebSocket-Key is missing or malformed');
  }
  if (headers['sec-websocket-version'] !== '13') throw badRequest('the only Sec-WebSocket-Version served is 13');
}

/** Answers with 101 and the protocol, if there is one. The handshake was checked; what the client breaks later is an event of the WebSocket. */
export function acceptWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  protocol: string | undefined,
): Promise<WebSocket> {
  const options: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    closeTimeout: CLOSE_TIMEOUT_MILLIS,
  };
  const server = new WebSocketServer(options);
  // Names such as SPDY/3.1+portforward.k8s.io are no tokens, so ws would refuse them: it is not shown any.
  delete request.headers['sec-websocket-protocol'];
  if (protocol !== undefined) server.on('headers', (lines) => lines.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve, reject) => {
    server.once('wsClientError', (error) => {
      socket.destroy();
      reject(error);
    });
    server.handleUpgrade(request, socket, head, (webSocket) => {
      // Nothing is read before somebody takes it.
      webSocket.pause();
      resolve(webSocket);
    });
  });
}
