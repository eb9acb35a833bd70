/**
 * Writes and reads SPDY/3.1 frames. Source: the SPDY Protocol, Draft 3.1.
 *
 * Boundary: converts between bytes and values, without I/O, and keeps no state except an incomplete frame. header-block.ts parses the
 * header blocks.
 */
import { ProtocolError } from '../protocol-error.ts';
import { firstHeaderBlockPrefix, headerBlock } from './header-block.ts';

export type Frame =
  /** A piece of the payload of a DATA frame. `fin` means that the sender has ended its side of the stream with this piece. */
  | { type: 'data'; streamId: number; bytes: Uint8Array; fin: boolean }
  | { type: 'synStream'; streamId: number; associatedId: number; fin: boolean; unidirectional: boolean; block: Buffer }
  | { type: 'synReply'; streamId: number; fin: boolean }
  | { type: 'rstStream'; streamId: number; status: number }
  | { type: 'settings' }
  | { type: 'ping'; id: number }
  /** The sender of the frame accepts no more streams. */
  | { type: 'goAway'; lastStreamId: number; status: number }
  | { type: 'headers'; streamId: number; block: Buffer }
  | { type: 'windowUpdate'; streamId: number; delta: number };

const VERSION = 3;
const FLAG_FIN = 1;
const FLAG_UNIDIRECTIONAL = 2;
const HEAD_BYTES = 8;
const STREAM_ID_MASK = 0x7fff_ffff;
/** A control frame is buffered until it is complete. Control frames of clients and runtimes are far smaller. */
const MAX_CONTROL_BYTES = 16 * 1024;

/**
 * The limit on the payload of written DATA frames. It is small because readers buffer whole frames. Upstream's clients have the same limit.
 */
export const MAX_DATA_BYTES = 32 * 1024;

const TYPE = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  headers: 8,
  windowUpdate: 9,
} as const;

export const RST_STATUS = { refusedStream: 3 } as const;
export const GO_AWAY_STATUS = { protocolError: 1 } as const;

function controlFrame(type: number, flags: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt16BE(0x8000 | VERSION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(payload.length, 4);
  head.writeUInt8(flags, 4);
  return Buffer.concat([head, payload]);
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
  return bytes;
}

export interface HeaderFrameOptions {
  /** True for the first header block of the connection, which begins the zlib stream that all blocks form. */
  first: boolean;
  fin?: boolean;
}

function headerFrame(
  type: number,
  head: Buffer,
  headers: Readonly<Record<string, string>>,
  options: HeaderFrameOptions,
) {
  const prefix = options.first ? firstHeaderBlockPrefix : Buffer.alloc(0);
  return controlFrame(type, options.fin === true ? FLAG_FIN : 0, Buffer.concat([head, prefix, headerBlock(headers)]));
}

/** The associated stream, the priority and the credential slot are 0. */
export const synStream = (
  streamId: number,
  headers: Readonly<Record<string, string>>,
  options: HeaderFrameOptions,
): Buffer => headerFrame(TYPE.synStream, Buffer.concat([words(streamId, 0), Buffer.alloc(2)]), headers, options);

export const synReply = (streamId: number, options: HeaderFrameOptions): Buffer =>
  headerFrame(TYPE.synReply, words(streamId), {}, options);

export const rstStream = (streamId: number, status: number): Buffer =>
  controlFrame(TYPE.rstStream, 0, words(streamId, status));

export const goAway = (lastStreamId: number, status: number): Buffer =>
  controlFrame(TYPE.goAway, 0, words(lastStreamId, status));

/** The caller writes the payload, which has `length` bytes, after the head. */
export function dataHead(streamId: number, length: number, fin: boolean): Buffer {
  const head = words(streamId, length);
  head.writeUInt8(fin ? FLAG_FIN : 0, 4);
  return head;
}

export const ping = (id: number): Buffer => controlFrame(TYPE.ping, 0, words(id));

/**
 * Takes the next bytes of a connection, and returns the frames and pieces of DATA in them. Throws a ProtocolError if the bytes are not
 * SPDY/3.1; the parser must not be used afterwards.
 */
export type FrameParser = (bytes: Uint8Array) => Frame[];

/** `sender`: the name of the sender in error messages. */
export function createFrameParser(sender: string): FrameParser {
  /** The received bytes of a control frame, or of the head of a DATA frame, that is not complete yet. */
  let held: Buffer = Buffer.alloc(0);
  let data: { streamId: number; fin: boolean; left: number } | undefined;

  const takeData = (bytes: Buffer, frames: Frame[]): Buffer => {
    if (data === undefined) return bytes;
    const piece = bytes.subarray(0, data.left);
    data.left -= piece.length;
    const { streamId, left } = data;
    const fin = data.fin && left === 0;
    if (piece.length > 0 || fin) frames.push({ type: 'data', streamId, bytes: piece, fin });
    if (left === 0) data = undefined;
    return bytes.subarray(piece.length);
  };

  return (input) => {
    const frames: Frame[] = [];
    const fresh = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
    let bytes: Buffer = held.length === 0 ? fresh : Buffer.concat([held, fresh]);
    while (bytes.length > 0) {
      if (data !== undefined) {
        bytes = takeData(bytes, frames);
        continue;
      }
      if (bytes.length < HEAD_BYTES) break;
      const length = bytes.readUIntBE(5, 3);
      const flags = bytes.readUInt8(4);
      if ((bytes.readUInt8(0) & 0x80) === 0) {
        data = { streamId: bytes.readUInt32BE(0), fin: (flags & FLAG_FIN) !== 0, left: length };
        bytes = takeData(bytes.subarray(HEAD_BYTES), frames);
        continue;
      }
      if ((bytes.readUInt16BE(0) & 0x7fff) !== VERSION) throw new ProtocolError(`${sender} does not speak SPDY/3`);
      if (length > MAX_CONTROL_BYTES) throw new ProtocolError(`${sender} sent a control frame of ${length} bytes`);
      if (bytes.length < HEAD_BYTES + length) break;
      const payload = Buffer.from(bytes.subarray(HEAD_BYTES, HEAD_BYTES + length));
      frames.push(controlOf(sender, bytes.readUInt16BE(2), flags, payload));
      bytes = bytes.subarray(HEAD_BYTES + length);
    }
    // Copy the bytes, because a few bytes must not keep the whole chunk in memory.
    held = Buffer.from(bytes);
    return frames;
  };
}

/**
 * Throws a ProtocolError if the type is unknown, or if the length does not fit the fields: a reader that relies on the fields alone would
 * treat surplus bytes as the next frame.
 */
function controlOf(sender: string, type: number, flags: number, payload: Buffer): Frame {
  const requireLength = (right: boolean): void => {
    if (!right) throw new ProtocolError(`${sender} sent a frame of type ${type} with ${payload.length} bytes`);
  };
  const word = (index: number): number => payload.readUInt32BE(index * 4);
  const streamId = (): number => word(0) & STREAM_ID_MASK;
  const fin = (flags & FLAG_FIN) !== 0;
  switch (type) {
    case TYPE.synStream: {
      requireLength(payload.length >= 10);
      const unidirectional = (flags & FLAG_UNIDIRECTIONAL) !== 0;
      const ids = { streamId: streamId(), associatedId: word(1) & STREAM_ID_MASK };
      return { type: 'synStream', ...ids, fin, unidirectional, block: payload.subarray(10) };
    }
    case TYPE.synReply:
      requireLength(payload.length >= 4);
      return { type: 'synReply', streamId: streamId(), fin };
    case TYPE.rstStream:
      requireLength(payload.length === 8);
      return { type: 'rstStream', streamId: streamId(), status: word(1) };
    case TYPE.settings:
      requireLength(payload.length >= 4 && payload.length === 4 + 8 * word(0));
      return { type: 'settings' };
    case TYPE.ping:
      requireLength(payload.length === 4);
      return { type: 'ping', id: word(0) };
    case TYPE.goAway:
      requireLength(payload.length === 8);
      return { type: 'goAway', lastStreamId: streamId(), status: word(1) };
    case TYPE.headers:
      requireLength(payload.length >= 4);
      return { type: 'headers', streamId: streamId(), block: payload.subarray(4) };
    case TYPE.windowUpdate:
      requireLength(payload.length === 8);
      return { type: 'windowUpdate', streamId: streamId(), delta: word(1) & STREAM_ID_MASK };
    default:
      throw new ProtocolError(`${sender} sent a frame of the unknown type ${type}`);
  }
}
