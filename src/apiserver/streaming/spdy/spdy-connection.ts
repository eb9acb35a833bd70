/**
 * The client's side of a SPDY/3.1 connection to the container runtime.
 *
 * Boundary: streams of bytes with headers; what they mean is channels.ts's. The runtime opens no streams.
 *
 * Invariants:
 *  1. Frames are handled one after the other, each when the one before has been taken: while nobody takes a stream's
 *     data, the connection is not read, and so the runtime stops sending.
 *  2. No more than one frame waits to be sent for each write() that is under way.
 *  3. Stream windows (WINDOW_UPDATE) hold nothing back, on neither side: the runtimes' SPDY library has none, and would
 *     never open one again. The connection's own flow control is what bounds both directions.
 */
import type { Duplex } from 'node:stream';
import type { Timers } from '../../../platform/platform.ts';
import { drainedOrClosed } from '../drained.ts';
import { closeAfterReplies } from '../replied.ts';
import { createFrameParser, dataHead, type Frame, MAX_DATA_BYTES, ping, synStream } from './frames.ts';

export interface SpdyStream {
  /** Resolves when more may be sent. Passed over once the stream or the connection has ended. */
  write(bytes: Uint8Array): Promise<void>;
  /** Half-close: the peer reads the end after what was written. */
  end(): void;
}

export interface SpdyConnection {
  /**
   * Opens a stream; resolves when the peer has replied, which it wants before data. `receive` gets what the peer sends;
   * nothing further is read until it resolves. Rejects where the peer refuses, or the connection ends before.
   */
  open(headers: Readonly<Record<string, string>>, receive: (bytes: Uint8Array) => Promise<void>): Promise<SpdyStream>;
  /** Resolves when the connection is over and all that was received is delivered; never rejects. */
  readonly ended: Promise<void>;
  /** Cuts the connection, when the peer has replied to every stream. */
  destroy(): void;
}

interface OpenStream {
  receive(bytes: Uint8Array): Promise<void>;
  reply: PromiseWithResolvers<void>;
  /** The peer has reset it: it takes nothing more. */
  closed: boolean;
}

export function createSpdyConnection(socket: Duplex, timers: Timers): SpdyConnection {
  const streams = new Map<number, OpenStream>();
  let nextId = 1;

  const handle = async (frame: Frame): Promise<void> => {
    if (frame.type === 'ping') {
      // Ours would be odd; we send none.
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
  };

  const read = async (): Promise<void> => {
    const parse = createFrameParser('the container runtime');
    for await (const chunk of socket) {
      for (const frame of parse(chunk as Buffer)) await handle(frame);
    }
  };
  const ended = read()
    .catch(() => undefined)
    .then(() => {
      socket.destroy();
      for (const stream of streams.values()) {
        stream.closed = true;
        stream.reply.reject(new Error('the container runtime closed the connection'));
      }
    });

  const send = async (streamId: number, bytes: Uint8Array, fin: boolean): Promise<void> => {
    socket.cork();
    socket.write(dataHead(streamId, bytes.length, fin));
    const more = bytes.length === 0 || socket.write(bytes);
    socket.uncork();
    if (!more) await drainedOrClosed(socket);
  };

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
      if (socket.destroyed) stream.reply.reject(new Error('the container runtime closed the connection'));
      else socket.write(synStream(id, headers, { first: id === 1 }));
      await stream.reply.promise;
      let finished = false;
      const mayWrite = (): boolean => !stream.closed && !finished && !socket.destroyed;
      return {
        async write(bytes) {
          for (let from = 0; from < bytes.length && mayWrite(); from += MAX_DATA_BYTES) {
            await send(id, bytes.subarray(from, from + MAX_DATA_BYTES), false);
          }
        },
        end() {
          if (mayWrite()) void send(id, new Uint8Array(), true);
          finished = true;
        },
      };
    },
  };
}
