/** Reads the messages of a WebSocket as a stream, and counts the bytes that the reader has not consumed. */
import type { Duplex } from 'node:stream';
import { createWebSocketStream, type WebSocket } from 'ws';
import type { Unfinished, UnfinishedPart } from '../http/bounds/unfinished.ts';

const TRY_AGAIN_LATER = 1013;
/** An estimate of the memory of one received chunk in addition to its bytes. */
const CHUNK_BYTES = 1024;

type Parts = Pick<Unfinished, 'begin'>;

/**
 * Counts the bytes of each message in `unfinished` until the reader of messageStream() has consumed the message. Closes the WebSocket if
 * `unfinished` refuses a message. `socket`: the connection of the WebSocket. `owner`: the name of its user.
 */
export function countMessages(webSocket: WebSocket, socket: Duplex, unfinished: Parts, owner?: string): void {
  let part: UnfinishedPart | undefined;
  let chunks = 0;
  const end = (): void => {
    part?.end();
    part = undefined;
    chunks = 0;
  };
  const refuse = (): void => {
    end();
    webSocket.close(TRY_AGAIN_LATER, 'too many bytes are being read');
    socket.off('data', count);
    webSocket.pause();
  };
  const count = (chunk: Uint8Array): void => {
    part ??= unfinished.begin(refuse, owner);
    chunks += 1;
    part.add(chunk.length + CHUNK_BYTES);
  };
  // Count before the WebSocket reads the chunk: the chunk may complete a message that is consumed immediately.
  socket.prependListener('data', count);
  // A ping or pong that arrives alone, in one chunk, is not part of a message.
  const endAlone = (): void => {
    if (chunks === 1) end();
  };
  webSocket.on('ping', endAlone).on('pong', endAlone).once('close', end);
  // The stream resumes the WebSocket when its reader has consumed the message.
  webSocket.on('message', () => webSocket.pause());
  const resume = webSocket.resume.bind(webSocket);
  webSocket.resume = () => {
    end();
    resume();
  };
}

/**
 * Returns a stream that reads one message at a time. With `asMessages`, the stream yields each message as a string or Buffer; otherwise,
 * the messages form a byte stream.
 */
export const messageStream = (webSocket: WebSocket, asMessages: boolean): Duplex =>
  createWebSocketStream(webSocket, {
    readableHighWaterMark: 0,
    readableObjectMode: asMessages,
    decodeStrings: !asMessages,
  });
