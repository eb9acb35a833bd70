/** What a client sends that is no request. */
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Timers } from '../../platform/platform.ts';
import { waitsForAnswer } from './bounds/turns.ts';

/** By the code of Node.js's parser; all others are a 400. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** A connection that is closed while its client still sends is reset, and the answer is lost. As long as Go's net/http waits. */
const LINGER_MILLIS = 500;

/** Answers as Node.js does, reads what else the client sends for half a second, and closes the connection. */
export function answerClientErrors(server: Server, timers: Timers): void {
  server.on('clientError', (error: NodeJS.ErrnoException, connection) => {
    const socket = connection as Socket;
    if (!socket.writable || waitsForAnswer(socket)) {
      socket.destroy();
      return;
    }
    // A listener of one's own takes the bytes from the parser, which would report each further piece again.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.end(`HTTP/1.1 ${STATUS_LINES[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
    const cut = timers.at(timers.now() + LINGER_MILLIS, () => socket.destroy());
    socket.once('close', () => cut.cancel());
  });
}
