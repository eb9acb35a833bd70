/** Reads the messages of a WebSocket as a stream, and counts the bytes that its reader has not taken. */
import type { Duplex } from 'node:stream';
import { createWebSocketStream, type WebSocket } from 'ws';
import type { Unfinished, UnfinishedPart } from '../http/bounds/unfinished.ts';

const TRY_AGAIN_LATER = 1013;
/** An estimate of the memory that one received chunk takes in addition to its bytes. */
const CHUNK_BYTES = 1024;

/**
 * Counts the bytes of each message from their arrival until the reader of messageStream() has taken the message. `socket` is
 * the connection of the WebSocket. Closes the WebSocket where its message has to give way to others.
 */
export function countMessages(webSocket: WebSocket, socket: Duplex, unfinished: Unfinished): void {
  let part: UnfinishedPart | undefined;
  let chunks = 0;
  const end = (): void => {
    part?.end();
    part = undefined;
    chunks = 0;
  };
  const refuse = (): void => {
    end();
    webSocket.close(TRY_AGAIN_LATER, 'too much is being read');
    socket.off('data', count);
    webSocket.pause();
  };
  const count = (chunk: Uint8Array): void => {
    part ??= unfinished.begin(refuse);
    chunks += 1;
    part.add(chunk.length + CHUNK_BYTES);
  };
  // Before the WebSocket reads the chunk: the message that the chunk ends may be taken at once.
  socket.prependListener('data', count);
  // A ping of an idle client is no part of a message.
  const endAlone = (): void => {
    if (chunks === 1) end();
  };
  webSocket.on('ping', endAlone).on('pong', endAlone).once('close', end);
  // The stream reads on when its reader asks for more, which is when the reader has taken the message.
  webSocket.on('message', () => webSocket.pause());
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
