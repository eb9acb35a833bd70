/** What a client sends over a WebSocket, as a stream. */
import type { Duplex } from 'node:stream';
import { createWebSocketStream, type WebSocket } from 'ws';
import type { Unfinished, UnfinishedPart } from '../http/unfinished.ts';

const TRY_AGAIN_LATER = 1013;

/**
 * Counts the bytes of each message from their arrival until the reader of messageStream() has taken the message. `socket` is
 * the connection of the WebSocket. Closes the WebSocket where it has to give way to others.
 */
export function countMessages(webSocket: WebSocket, socket: Duplex, unfinished: Unfinished): void {
  let part: UnfinishedPart | undefined;
  const end = (): void => {
    part?.end();
    part = undefined;
  };
  const refuse = (): void => {
    end();
    webSocket.close(TRY_AGAIN_LATER, 'too many messages are being read');
    socket.off('data', count);
    webSocket.pause();
  };
  const count = (chunk: Uint8Array): void => {
    part ??= unfinished.begin(refuse);
    part.add(chunk.length);
  };
  // Before the WebSocket reads the chunk: the message that the chunk ends may be taken at once.
  socket.prependListener('data', count);
  webSocket.once('close', end);
  // The stream of the messages reads on when its reader has taken the one before.
  const resume = webSocket.resume.bind(webSocket);
  webSocket.resume = () => {
    end();
    resume();
  };
}

/** A message at a time. `asMessages`: each as the string or Buffer that it is; else their bytes. */
export const messageStream = (webSocket: WebSocket, asMessages: boolean): Duplex =>
  createWebSocketStream(webSocket, {
    readableHighWaterMark: 0,
    ...(asMessages ? { readableObjectMode: true, decodeStrings: false } : {}),
  });
