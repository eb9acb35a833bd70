/**
 * SPDY/3.1 frames: what a client writes, and what it reads. Source: the SPDY Protocol, Draft 3.1.
 *
 * Boundary: bytes and values, no I/O. Header blocks that come in are passed over: the container runtime's replies say
 * nothing in them.
 */
import { firstHeaderBlockPrefix, headerBlock } from './header-block.ts';

export type Frame =
  /** A piece of a DATA frame's payload as it arrived; `fin` on the last one: the sender has ended its side of the stream. */
  | { type: 'data'; streamId: number; bytes: Uint8Array; fin: boolean }
  | { type: 'synReply'; streamId: number; fin: boolean }
  | { type: 'rstStream'; streamId: number; status: number }
  | { type: 'ping'; id: number }
  /** The sender will take no more streams. */
  | { type: 'goAway'; lastStreamId: number; status: number }
  | { type: 'windowUpdate'; streamId: number; delta: number };

const VERSION = 3;
const FLAG_FIN = 1;
const HEAD_BYTES = 8;
const STREAM_ID_MASK = 0x7fff_ffff;
/** A control frame is held until it is whole; what runtimes send is far smaller. */
const MAX_CONTROL_BYTES = 64 * 1024;

const TYPE = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, goAway: 7, windowUpdate: 9 } as const;

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

/** `first`: no stream was opened on the connection before. The header blocks of a connection are one zlib stream. */
export function synStream(streamId: number, headers: Readonly<Record<string, string>>, first: boolean): Buffer {
  // No associated stream; priority and credential slot 0.
  const head = Buffer.concat([words(streamId, 0), Buffer.alloc(2)]);
  const prefix = first ? firstHeaderBlockPrefix : Buffer.alloc(0);
  return controlFrame(TYPE.synStream, 0, Buffer.concat([head, prefix, headerBlock(headers)]));
}

/** The head of a DATA frame; its payload follows. */
export function dataHead(streamId: number, length: number, fin: boolean): Buffer {
  const head = words(streamId, length);
  head.writeUInt8(fin ? FLAG_FIN : 0, 4);
  return head;
}

export const ping = (id: number): Buffer => controlFrame(TYPE.ping, 0, words(id));

/** Takes the bytes of a connection piece by piece. Throws where they are not SPDY/3.1; it must not be used after that. */
export type FrameParser = (bytes: Uint8Array) => Frame[];

export function createFrameParser(): FrameParser {
  /** The beginning of a control frame or of a head. */
  let held: Buffer = Buffer.alloc(0);
  /** The DATA frame whose payload is coming. */
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
      if ((bytes.readUInt16BE(0) & 0x7fff) !== VERSION) throw new Error('the container runtime does not speak SPDY/3');
      if (length > MAX_CONTROL_BYTES) throw new Error(`the container runtime sent a control frame of ${length} bytes`);
      if (bytes.length < HEAD_BYTES + length) break;
      const frame = controlOf(bytes.readUInt16BE(2), flags, bytes.subarray(HEAD_BYTES, HEAD_BYTES + length));
      if (frame !== undefined) frames.push(frame);
      bytes = bytes.subarray(HEAD_BYTES + length);
    }
    // A copy: a few bytes must not keep the whole piece they came in.
    held = Buffer.from(bytes);
    return frames;
  };
}

/** undefined for frames that tell a client of the container runtime nothing: SETTINGS, HEADERS, SYN_STREAM. */
function controlOf(type: number, flags: number, payload: Buffer): Frame | undefined {
  const word = (index: number): number => {
    if (payload.length < index * 4 + 4) throw new Error(`the container runtime sent a short frame of type ${type}`);
    return payload.readUInt32BE(index * 4);
  };
  const streamId = (): number => word(0) & STREAM_ID_MASK;
  switch (type) {
    case TYPE.synReply:
      return { type: 'synReply', streamId: streamId(), fin: (flags & FLAG_FIN) !== 0 };
    case TYPE.rstStream:
      return { type: 'rstStream', streamId: streamId(), status: word(1) };
    case TYPE.ping:
      return { type: 'ping', id: word(0) };
    case TYPE.goAway:
      return { type: 'goAway', lastStreamId: streamId(), status: word(1) };
    case TYPE.windowUpdate:
      return { type: 'windowUpdate', streamId: streamId(), delta: word(1) & STREAM_ID_MASK };
    default:
      return undefined;
  }
}
