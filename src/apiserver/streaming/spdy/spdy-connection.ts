/**
 * The client side of a SPDY/3.1 connection to the container runtime.
 *
 * Boundary: provides byte streams with headers. channels.ts gives the streams their meaning. The runtime opens no streams.
 *
 * Invariants:
 *  1. Frames are handled one after another. While the receiver of a stream's data is busy, the connection is not read, so the runtime stops
 *     sending.
 *  2. At most one frame waits to be sent for each write() in progress.
 *  3. Stream windows (WINDOW_UPDATE) never hold back data in either direction, because the runtimes' SPDY library does not implement them
 *     and would never open a window again. Only the flow control of TCP limits both directions.
 */
import type { Duplex } from 'node:stream';
import type { Timers } from '../../../platform/platform.ts';
import { drainedOrClosed } from '../../http/wait-for-drain.ts';
import { closeAfterReplies } from '../close-after-replies.ts';
import { createFrameParser, dataHead, type Frame, MAX_DATA_BYTES, ping, synStream } from './frames.ts';

export interface SpdyStream {
  /** Resolves when more may be sent. Does nothing if the stream or the connection has ended. */
  write(bytes: Uint8Array): Promise<void>;
  /** Half-closes the stream: the peer reads the end after all written data. */
  end(): void;
}

export interface SpdyConnection {
  /**
   * Resolves when the peer has replied. The peer accepts no data before its reply. `receive` is called with the peer's data; nothing more
   * is read until `receive` resolves. Rejects if the peer refuses the stream or the connection ends first.
   */
  open(headers: Readonly<Record<string, string>>, receive: (bytes: Uint8Array) => Promise<void>): Promise<SpdyStream>;
  /** Resolves when the connection has ended and all received data has been delivered. Never rejects. */
  readonly ended: Promise<void>;
  /** Destroys the socket when the peer has replied to, or reset, every stream (see closeAfterReplies()). */
  destroy(): void;
}

interface OpenStream {
  receive(bytes: Uint8Array): Promise<void>;
  reply: PromiseWithResolvers<void>;
  /** Whether the peer has reset the stream or the connection has ended, so that no more data can be sent. */
  closed: boolean;
}

export function createSpdyConnection(socket: Duplex, timers: Timers): SpdyConnection {
  const streams = new Map<number, OpenStream>();
  let nextId = 1;
  const ended = readFrames(socket, streams)
    .catch(() => undefined)
    .then(() => {
      socket.destroy();
      for (const stream of streams.values()) {
        stream.closed = true;
        stream.reply.reject(connectionClosed());
      }
    });
  return {
    ended,
    destroy() {
      if (socket.destroyed) return;
      const replies = [...streams.values()].map(({ reply }) => reply.promise);
      closeAfterReplies(socket, Promise.allSettled(replies), timers, () => socket.destroy());
    },
    async open(headers, receive) {
      const id = nextId;
      nextId += 2;
      const stream: OpenStream = { receive, reply: Promise.withResolvers(), closed: false };
      streams.set(id, stream);
      if (socket.destroyed) stream.reply.reject(connectionClosed());
      else socket.write(synStream(id, headers, { first: id === 1 }));
      await stream.reply.promise;
      return streamWriter(socket, id, stream);
    },
  };
}

const connectionClosed = (): Error => new Error('the container runtime closed the connection');

async function readFrames(socket: Duplex, streams: ReadonlyMap<number, OpenStream>): Promise<void> {
  const parse = createFrameParser('the container runtime');
  for await (const chunk of socket) {
    for (const frame of parse(chunk as Buffer)) await handleFrame(socket, streams, frame);
  }
}

async function handleFrame(socket: Duplex, streams: ReadonlyMap<number, OpenStream>, frame: Frame): Promise<void> {
  if (frame.type === 'ping') {
    // PINGs of the peer have even IDs. An odd ID would be a reply to a PING of this side, which sends none.
    if (frame.id % 2 === 0) socket.write(ping(frame.id));
    return;
  }
  if (frame.type !== 'synReply' && frame.type !== 'rstStream' && frame.type !== 'data') return;
  const stream = streams.get(frame.streamId);
  if (stream === undefined) return;
  if (frame.type === 'synReply') stream.reply.resolve();
  else if (frame.type === 'rstStream') {
    stream.closed = true;
    stream.reply.reject(new Error(`the container runtime reset the stream: status ${frame.status}`));
  } else if (frame.bytes.length > 0) await stream.receive(frame.bytes);
}

function streamWriter(socket: Duplex, id: number, stream: OpenStream): SpdyStream {
  let finished = false;
  const mayWrite = (): boolean => !stream.closed && !finished && !socket.destroyed;
  return {
    async write(bytes) {
      for (let from = 0; from < bytes.length && mayWrite(); from += MAX_DATA_BYTES) {
        await sendData(socket, id, bytes.subarray(from, from + MAX_DATA_BYTES), false);
      }
    },
    end() {
      if (mayWrite()) void sendData(socket, id, new Uint8Array(), true);
      finished = true;
    },
  };
}

async function sendData(socket: Duplex, streamId: number, bytes: Uint8Array, fin: boolean): Promise<void> {
  socket.cork();
  socket.write(dataHead(streamId, bytes.length, fin));
  const more = bytes.length === 0 || socket.write(bytes);
  socket.uncork();
  if (!more) await drainedOrClosed(socket);
}
