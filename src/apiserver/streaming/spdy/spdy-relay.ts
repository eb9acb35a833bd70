/**
 * Relays a SPDY client to the container runtime frame by frame: each frame is parsed, checked and encoded again.
 *
 * The runtime's reader trusts every count and length, and allocates the memory before it has the bytes: a frame of 20 bytes could crash the
 * runtime, which ends the streams of all containers. So the relay checks all bytes of a client.
 *
 * Invariants:
 *  1. The runtime gets only streams of known types with new IDs in ascending order, small DATA frames for open streams, resets and pings.
 *     The runtime keeps at most MAX_OPEN_STREAMS streams of a connection at a time, including reset streams.
 *  2. A client gets whole frames, so that the relay can insert its own frames between them.
 *  3. The relay keeps no state of a stream that both sides have ended and to which the runtime has replied.
 *  4. After each 20 ms in which the relay handles frames of a client, the event loop can do other work.
 */
import type { Writable } from 'node:stream';
import { workInTurns } from '../../../platform/work-in-turns.ts';
import { ProtocolError } from '../protocol-error.ts';
import { createSizeReader } from '../terminal-sizes.ts';
import {
  createFrameParser,
  type Frame,
  GO_AWAY_STATUS,
  goAway,
  ping,
  RST_STATUS,
  rstStream,
  synReply,
  synStream,
} from './frames.ts';
import { createHeaderReader, type HeaderReader } from './header-block.ts';
import { type JoinedStream, type ResetStreams, resetStreams } from './reset-streams.ts';
import { afterFlush, inOneWrite, send, sendData } from './send.ts';
import type { StreamRoom } from './stream-limit.ts';

/** The limit on the open streams of a connection. A port-forward has two streams for each forwarded connection. */
const MAX_OPEN_STREAMS = 1024;
/**
 * The limit on streams that one connection opens in its lifetime: containerd keeps more than 1 kB for each stream, even an ended one, until
 * the connection ends. The limit allows 131,072 forwarded connections.
 */
const MAX_STREAMS = 262_144;
/** Each HEADERS frame must be decompressed. Usual clients send none. */
const MAX_HEADERS_FRAMES = 1024;

export interface RelayRules {
  /** The allowed values of the header streamtype. */
  types: readonly string[];
  /** Whether the connection may have only one stream of each type. */
  once: boolean;
  /** The command starts with stream number `atStream`, counted from 1. The relay awaits turn() before it opens this stream. */
  start?: { atStream: number; turn(): Promise<void> };
  /** Called for each piece of a DATA frame from the runtime. */
  output?(): void;
  room?: StreamRoom;
}

export interface SpdyRelay {
  /** After a rejection with a ProtocolError, the client's bytes must be discarded. */
  fromClient(bytes: Uint8Array): Promise<void>;
  /** After a rejection with a ProtocolError, the runtime's bytes must be discarded. */
  fromRuntime(bytes: Uint8Array): Promise<void>;
  /** Resolves when the runtime has replied to, or reset, every opened stream. After the call, the relay opens no more streams. */
  replied(): Promise<unknown>;
  refuse(): void;
  /** Must be called when the connection has ended, so that its streams no longer count toward `room`. */
  ended(): void;
}

interface OpenStream {
  /** Returns the part of the client's data to pass on: complete terminal sizes on a resize stream, otherwise all bytes. */
  content(bytes: Uint8Array): Uint8Array;
  joined: JoinedStream;
  clientEnded: boolean;
  runtimeEnded: boolean;
}

interface Relaying {
  client: Writable;
  runtime: Writable;
  rules: RelayRules;
  readHeaders: HeaderReader;
  streams: Map<number, OpenStream>;
  resets: ResetStreams;
  maxStreams: number;
  /** The replies that the runtime has not sent yet, by the ID of the stream. */
  replies: Map<number, PromiseWithResolvers<void>>;
  types: Set<string>;
  lastId: number;
  headersFrames: number;
  opened: number;
  /** Whether the client has received a SYN_REPLY, whose header block begins the zlib stream. */
  replied: boolean;
  /** Whether replied() was called, so that no more streams may be opened. */
  closing: boolean;
}

export function createSpdyRelay(
  client: Writable,
  runtime: Writable,
  rules: RelayRules,
  maxStreams = MAX_STREAMS,
): SpdyRelay {
  const relaying: Relaying = {
    client,
    runtime,
    rules,
    maxStreams,
    readHeaders: createHeaderReader(),
    streams: new Map(),
    resets: resetStreams(),
    replies: new Map(),
    types: new Set(),
    lastId: 0,
    headersFrames: 0,
    opened: 0,
    replied: false,
    closing: false,
  };
  const leave = rules.room?.enter(() => openStreams(relaying));
  // Let other work run between frames: one read may contain thousands of frames, and a frame with headers takes 0.1 ms.
  const betweenFrames = workInTurns();
  const [parseClient, parseRuntime] = [createFrameParser('the client'), createFrameParser('the container runtime')];
  return {
    async fromClient(bytes) {
      await inOneWrite(runtime, async () => {
        for (const [index, frame] of parseClient(bytes).entries()) {
          // Do not yield before the first frame, so that a client that sends one frame does not wait for clients that send many.
          if (index > 0) await betweenFrames();
          await takeOfClient(relaying, frame);
        }
      });
    },
    async fromRuntime(bytes) {
      const frames = parseRuntime(bytes);
      client.cork();
      for (const frame of frames) takeOfRuntime(relaying, frame);
      client.uncork();
    },
    replied() {
      relaying.closing = true;
      return Promise.all([...relaying.replies.values()].map(({ promise }) => promise));
    },
    refuse: () => send(client, goAway(0, GO_AWAY_STATUS.protocolError)),
    ended: () => leave?.(),
  };
}

const openStreams = ({ streams, resets }: Relaying): number => streams.size + resets.count();

const unchanged = (bytes: Uint8Array): Uint8Array => bytes;

async function open(relaying: Relaying, frame: Extract<Frame, { type: 'synStream' }>): Promise<void> {
  const { client, runtime, rules, streams, types } = relaying;
  const { streamId, fin } = frame;
  if (streamId % 2 === 0 || streamId <= relaying.lastId) {
    throw new ProtocolError(`the client may not open stream ${streamId} now`);
  }
  if (frame.unidirectional || frame.associatedId !== 0) {
    throw new ProtocolError('the client opened a stream that is unidirectional or associated with another');
  }
  const headers = relaying.readHeaders(frame.block);
  const type = headers.get('streamtype') ?? '';
  if (!rules.types.includes(type))
    throw new ProtocolError(`streams of type ${JSON.stringify(type)} are not supported here`);
  if (rules.once && types.has(type)) throw new ProtocolError(`the client opened a second stream of type ${type}`);
  types.add(type);
  relaying.lastId = streamId;
  if (openStreams(relaying) >= MAX_OPEN_STREAMS || rules.room?.isFull()) {
    send(client, rstStream(streamId, RST_STATUS.refusedStream));
    return;
  }
  if (relaying.opened >= relaying.maxStreams) {
    throw new ProtocolError(`the client opened more than ${relaying.maxStreams} streams on a connection`);
  }
  relaying.opened += 1;
  if (relaying.opened === rules.start?.atStream) await afterFlush(runtime, rules.start.turn);
  if (relaying.closing) return;
  const content = type === 'resize' ? createSizeReader() : unchanged;
  const joined = relaying.resets.opened(streamId, headers);
  streams.set(streamId, { content, joined, clientEnded: fin, runtimeEnded: false });
  relaying.replies.set(streamId, Promise.withResolvers());
  send(runtime, synStream(streamId, Object.fromEntries(headers), { first: relaying.opened === 1, fin }));
}

async function takeOfClient(relaying: Relaying, frame: Frame): Promise<void> {
  const { runtime, streams } = relaying;
  switch (frame.type) {
    case 'synStream':
      await open(relaying, frame);
      break;
    case 'data': {
      const stream = known(relaying, frame.streamId);
      if (stream === undefined) break;
      if (stream.clientEnded) throw new ProtocolError(`the client sent data after the end of stream ${frame.streamId}`);
      sendData(runtime, frame.streamId, stream.content(frame.bytes), frame.fin);
      stream.clientEnded = frame.fin;
      forgetEnded(relaying, frame.streamId, stream);
      break;
    }
    case 'rstStream': {
      const stream = known(relaying, frame.streamId);
      if (stream === undefined) break;
      streams.delete(frame.streamId);
      relaying.resets.reset(stream.joined);
      send(runtime, rstStream(frame.streamId, frame.status));
      break;
    }
    case 'ping':
      send(runtime, ping(frame.id));
      break;
    case 'synReply':
      throw new ProtocolError(`the client replied to stream ${frame.streamId}, which the runtime did not open`);
    case 'headers':
      // Read the block, because later blocks may refer to its bytes. Its headers are dropped: container streams have no further headers.
      known(relaying, frame.streamId);
      relaying.headersFrames += 1;
      if (relaying.headersFrames > MAX_HEADERS_FRAMES) {
        throw new ProtocolError(`the client sent more than ${MAX_HEADERS_FRAMES} HEADERS frames`);
      }
      relaying.readHeaders(frame.block);
      break;
    default:
    // SETTINGS and WINDOW_UPDATE have no effect here. The end of the connection has the same effect as GOAWAY.
  }
}

function takeOfRuntime(relaying: Relaying, frame: Frame): void {
  const { client, rules, streams } = relaying;
  switch (frame.type) {
    case 'synReply': {
      replied(relaying, frame.streamId);
      const stream = streams.get(frame.streamId);
      if (stream === undefined) break;
      send(client, synReply(frame.streamId, { first: !relaying.replied, fin: frame.fin }));
      relaying.replied = true;
      stream.runtimeEnded ||= frame.fin;
      forgetEnded(relaying, frame.streamId, stream);
      break;
    }
    case 'data': {
      rules.output?.();
      const stream = streams.get(frame.streamId);
      if (stream === undefined) break;
      sendData(client, frame.streamId, frame.bytes, frame.fin);
      stream.runtimeEnded ||= frame.fin;
      forgetEnded(relaying, frame.streamId, stream);
      break;
    }
    case 'rstStream': {
      replied(relaying, frame.streamId);
      const stream = streams.get(frame.streamId);
      if (stream === undefined) break;
      forget(relaying, frame.streamId, stream);
      send(client, rstStream(frame.streamId, frame.status));
      break;
    }
    case 'ping':
      send(client, ping(frame.id));
      break;
    case 'goAway':
      send(client, goAway(frame.lastStreamId, frame.status));
      break;
    default:
  }
}

function replied({ replies }: Relaying, streamId: number): void {
  replies.get(streamId)?.resolve();
  replies.delete(streamId);
}

/**
 * Returns undefined for a stream that is no longer open: the client may have sent the frame before it received the end or the refusal of
 * the stream. Throws a ProtocolError if the ID is even, or greater than the ID of the client's last stream.
 */
function known({ streams, lastId }: Relaying, streamId: number): OpenStream | undefined {
  const stream = streams.get(streamId);
  if (stream !== undefined || (streamId % 2 === 1 && streamId <= lastId)) return stream;
  throw new ProtocolError(`the client used stream ${streamId}, which it did not open`);
}

function forgetEnded(relaying: Relaying, streamId: number, stream: OpenStream): void {
  if (stream.clientEnded && stream.runtimeEnded) forget(relaying, streamId, stream);
}

function forget({ streams, resets }: Relaying, streamId: number, stream: OpenStream): void {
  streams.delete(streamId);
  resets.ended(stream.joined);
}
