/** The server side of a WebSocket handshake. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { badRequest } from '../../machinery/status.ts';

/** The limit of upstream's server (golang.org/x/net/websocket). */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** How long a client may take to respond to a close frame. */
const CLOSE_TIMEOUT_MILLIS = 1_000;

/** The subprotocols that the client offers, in its order of preference. */
export const offeredProtocols = (request: IncomingMessage): string[] =>
  (request.headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** Subprotocols that are relayed message by message. Source: v1.33 remotecommand and portforward of the kubelet. */
const OLDER_PROTOCOLS = {
  command: ['v4.base64.channel.k8s.io', 'channel.k8s.io', 'base64.channel.k8s.io'],
  ports: ['v4.channel.k8s.io', 'v4.base64.channel.k8s.io'],
};

/** Selects the subprotocol for the runtime; a client that offers none gets the binary one. Throws 400 BadRequest. */
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
/** The limit on the reason in a close frame (RFC 6455, section 5.5). */
const MAX_REASON_BYTES = 123;

/** Closes the WebSocket of a client whose messages break a protocol. */
export const closeForProtocol = (webSocket: WebSocket, message: string): void =>
  webSocket.close(PROTOCOL_ERROR, Buffer.from(message).subarray(0, MAX_REASON_BYTES));

/** Throws 400 BadRequest if acceptWebSocket() would not respond with 101. */
export function checkHandshake({ method, headers }: IncomingMessage): void {
  if (method !== 'GET') throw badRequest(`a WebSocket handshake must use GET, not ${method}`);
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) {
    throw badRequest('the header Sec-WebSocket-Key is missing or malformed');
  }
  if (headers['sec-websocket-version'] !== '13') throw badRequest('the only supported Sec-WebSocket-Version is 13');
}

/** Responds with 101 and the protocol, if any. checkHandshake() must have passed; later violations are events of the WebSocket. */
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
  // Names such as SPDY/3.1+portforward.k8s.io are not tokens, so ws would refuse them: hide the header from it.
  delete request.headers['sec-websocket-protocol'];
  if (protocol !== undefined) server.on('headers', (lines) => lines.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve, reject) => {
    server.once('wsClientError', (error) => {
      socket.destroy();
      reject(error);
    });
    server.handleUpgrade(request, socket, head, (webSocket) => {
      // Read nothing before a reader consumes it.
      webSocket.pause();
      resolve(webSocket);
    });
  });
}
