/** Handles bytes from clients that are not a valid HTTP request. */
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Timers } from '../../platform/platform.ts';
import { waitsForAnswer } from './bounds/pipelining.ts';

/** By error code of Node.js's parser; every other error is a 400. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Closing a connection while the client still sends resets it, and the response is lost. Go's net/http waits as long. */
const LINGER_MILLIS = 500;

/** Responds as Node.js does, discards what else the client sends for half a second, and closes the connection. */
export function answerClientErrors(server: Server, timers: Timers): void {
  server.on('clientError', (error: NodeJS.ErrnoException, connection) => {
    const socket = connection as Socket;
    if (!socket.writable || waitsForAnswer(socket)) {
      socket.destroy();
      return;
    }
    // A data listener detaches the parser, which would otherwise report an error again for each further chunk.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.end(`HTTP/1.1 ${STATUS_LINES[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
    const cut = timers.at(timers.now() + LINGER_MILLIS, () => socket.destroy());
    socket.once('close', () => cut.cancel());
  });
}
