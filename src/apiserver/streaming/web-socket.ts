import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { badRequest } from '../../machinery/status.ts';

/** Per message. Source: upstream's server (golang.org/x/net/websocket). */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
const CLOSE_TIMEOUT_MILLIS = 1_000;

/** In the client's order of preference. */
export const offeredProtocols = (request: IncomingMessage): string[] =>
  (request.headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/**
 * The subprotocols that are relayed message by message, for commands (exec and attach) and for the ports of port-forward. Source: v1.33
 * remotecommand and portforward of the kubelet.
 */
const OLDER_PROTOCOLS = {
  command: ['v4.base64.channel.k8s.io', 'channel.k8s.io', 'base64.channel.k8s.io'],
  ports: ['v4.channel.k8s.io', 'v4.base64.channel.k8s.io'],
};

function firstKnown(offered: readonly string[], known: readonly string[]): string {
  const protocol = offered.find((name) => known.includes(name));
  if (protocol !== undefined) return protocol;
  throw badRequest(
    `unable to negotiate protocol: client supports [${offered.join(' ')}], server supports [${known.join(' ')}]`,
  );
}

/**
 * Returns the first known subprotocol that the client offers, or the binary subprotocol if the client offers none. `command` is true for
 * exec and attach. Throws 400 BadRequest if no offered subprotocol is known.
 */
export function olderProtocol(offered: readonly string[], command: boolean): string {
  if (offered.length === 0) return command ? 'channel.k8s.io' : 'v4.channel.k8s.io';
  return firstKnown(offered, command ? OLDER_PROTOCOLS.command : OLDER_PROTOCOLS.ports);
}

/** The messages of the log are base64 text. Source of this name and the next one: wsstream.NewDefaultReaderProtocols of v1.33. */
export const BASE64_LOG = 'base64.binary.k8s.io';
const BINARY_LOG = 'binary.k8s.io';

/**
 * Returns undefined if the client offers no subprotocol: the messages are then binary. Throws 400 BadRequest if no offered subprotocol is
 * known.
 */
export const logProtocol = (offered: readonly string[]): string | undefined =>
  offered.length === 0 ? undefined : firstKnown(offered, [BINARY_LOG, BASE64_LOG]);

/**
 * Returns the only subprotocol that the client offers, whatever its name is; undefined if the client offers none. Throws 400 BadRequest if
 * the client offers several. Source: v1.33, which leaves the choice to golang.org/x/net/websocket.
 */
export function watchProtocol(offered: readonly string[]): string | undefined {
  if (offered.length <= 1) return offered[0];
  throw badRequest(`a watch supports one subprotocol, not several: [${offered.join(' ')}]`);
}

const PROTOCOL_ERROR = 1002;
/** Source: RFC 6455, section 5.5. */
const MAX_REASON_BYTES = 123;

export const closeForProtocol = (webSocket: WebSocket, message: string): void =>
  webSocket.close(PROTOCOL_ERROR, Buffer.from(message).subarray(0, MAX_REASON_BYTES));

/** Throws 400 BadRequest if the request is not a valid WebSocket handshake, which acceptWebSocket() requires. */
export function checkHandshake({ method, headers }: IncomingMessage): void {
  if (method !== 'GET') throw badRequest(`a WebSocket handshake must use GET, not ${method}`);
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) {
    throw badRequest('the header Sec-WebSocket-Key is missing or malformed');
  }
  if (headers['sec-websocket-version'] !== '13') throw badRequest('the only supported Sec-WebSocket-Version is 13');
}

/**
 * Responds with 101 and the subprotocol, and resolves to the paused WebSocket. The request must have passed checkHandshake(). If the client
 * has ended its side of the connection, or ws refuses the handshake, destroys the connection and rejects.
 */
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
  // Hide the header from ws, which refuses names such as SPDY/3.1+portforward.k8s.io because they are not tokens.
  delete request.headers['sec-websocket-protocol'];
  if (protocol !== undefined) server.on('headers', (lines) => lines.push(`Sec-WebSocket-Protocol: ${protocol}`));
  return new Promise((resolve, reject) => {
    // Check this first: ws would end such a connection without calling back.
    if (!socket.readable || !socket.writable) {
      socket.destroy();
      reject(badRequest('the client has ended its connection'));
      return;
    }
    server.once('wsClientError', (error) => {
      socket.destroy();
      reject(error);
    });
    server.handleUpgrade(request, socket, head, (webSocket) => {
      // Read nothing before there is a reader that consumes the messages.
      webSocket.pause();
      resolve(webSocket);
    });
  });
}
