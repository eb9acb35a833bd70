import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Timers } from '../../platform/platform.ts';
import { isFree, isReceiving } from './bounds/pipelining.ts';

/** The status lines of the responses, by Node.js's error code. Other errors lead to 400 Bad Request. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/**
 * How long the server keeps reading before it closes the connection: closing a connection while the client still sends resets the
 * connection, and the response may be lost. Source: Go's net/http.
 */
const LINGER_MILLIS = 500;

/**
 * Responds to an invalid request as Node.js does, after the responses to the earlier requests on the connection. Closes the connection
 * without a response if the invalid bytes belong to the body of a request that has no response yet.
 */
export function answerClientErrors(server: Server, timers: Timers): void {
  server.on('clientError', (error: NodeJS.ErrnoException, connection) => {
    const socket = connection as Socket;
    if (!socket.writable || isReceiving(socket)) {
      socket.destroy();
      return;
    }
    // Replacing the data listeners detaches the HTTP parser, which would otherwise report an error again for each further chunk.
    socket.removeAllListeners('data').on('data', () => undefined);
    void isFree(socket).then((free) => {
      if (free) end(socket, STATUS_LINES[error.code ?? ''] ?? '400 Bad Request', timers);
    });
  });
}

function end(socket: Socket, status: string, timers: Timers): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
  const cut = timers.at(timers.now() + LINGER_MILLIS, () => socket.destroy());
  socket.once('close', () => cut.cancel());
}
