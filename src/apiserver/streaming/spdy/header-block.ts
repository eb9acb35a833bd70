/**
 * Writes and reads SPDY/3 header blocks. The protocol compresses all blocks of a connection as one zlib stream with a preset dictionary.
 * lifepod writes only a few bytes, and puts them into stored, that is, uncompressed blocks (RFC 1951, section 3.2.4). Received blocks are
 * decompressed up to a limit, and their counts and lengths are checked against the bytes that are present.
 */
import { constants, inflateRawSync } from 'node:zlib';
import { ProtocolError } from '../protocol-error.ts';
import { DICTIONARY } from './dictionary.ts';

/** The zlib head of a connection's first block (RFC 1950): deflate, preset dictionary, and the Adler-32 of SPDY/3's dictionary. */
export const firstHeaderBlockPrefix: Buffer = Buffer.from('7820e3c6a7c2', 'hex');

/** An empty stored block, after which the reader can decode everything before it. */
const FLUSH = Buffer.from('000000ffff', 'hex');
const MAX_STORED_BYTES = 0xffff;

/** Clients send fewer than 200 bytes; the runtime's reader accepts at most 4 KiB. */
const MAX_BLOCK_BYTES = 2048;
const MAX_HEADERS = 32;
/** The maximum distance of a reference to earlier bytes in a deflate stream (RFC 1951). */
const WINDOW_BYTES = 32 * 1024;

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Throws a RangeError if the headers take 64 KiB or more. */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const pairs = Object.entries(headers);
  const count = Buffer.alloc(4);
  count.writeUInt32BE(pairs.length);
  const block = Buffer.concat([count, ...pairs.flatMap(([name, value]) => [text(name.toLowerCase()), text(value)])]);
  if (block.length > MAX_STORED_BYTES) throw new RangeError(`a header block of ${block.length} bytes`);
  const head = Buffer.alloc(5);
  head.writeUInt16LE(block.length, 1);
  head.writeUInt16LE(block.length ^ 0xffff, 3);
  return Buffer.concat([head, block, FLUSH]);
}

/**
 * Decodes the next header block of a connection. Must be called for all header blocks of the connection, in their order. Throws a
 * ProtocolError if the block is not valid; the reader must not be used afterwards.
 */
export type HeaderReader = (block: Uint8Array) => Map<string, string>;

export function createHeaderReader(): HeaderReader {
  /** The last decompressed bytes, to which the next header block may refer. */
  let window: Buffer = DICTIONARY;
  let first = true;
  return (input) => {
    let block = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
    if (first) block = withoutPrefix(block);
    first = false;
    if (!block.subarray(-4).equals(FLUSH.subarray(-4)))
      throw new ProtocolError('a header block does not end with a flush');
    const plain = inflated(block, window);
    window = Buffer.concat([window, plain]).subarray(-WINDOW_BYTES);
    return pairsOf(plain);
  };
}

function withoutPrefix(block: Buffer): Buffer {
  const [method = 0, flags = 0] = block;
  const usesDictionary = (method & 0x0f) === 8 && (flags & 0x20) !== 0 && block.readUInt16BE(0) % 31 === 0;
  if (usesDictionary && block.subarray(2, 6).equals(firstHeaderBlockPrefix.subarray(2))) return block.subarray(6);
  throw new ProtocolError("a header block is not compressed with SPDY/3's dictionary");
}

/**
 * `dictionary`: the earlier bytes, to which the block may refer. Each block ends at a byte boundary, so it can be decompressed alone.
 * Throws a ProtocolError if the block is not valid, or has more than MAX_BLOCK_BYTES.
 */
function inflated(block: Buffer, dictionary: Buffer): Buffer {
  try {
    return inflateRawSync(block, {
      dictionary,
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: MAX_BLOCK_BYTES,
      chunkSize: MAX_BLOCK_BYTES,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new ProtocolError(`a header block has more than ${MAX_BLOCK_BYTES} bytes`);
    }
    throw new ProtocolError('a header block cannot be decompressed');
  }
}

function pairsOf(plain: Buffer): Map<string, string> {
  let at = 0;
  const take = (length: number): Buffer => {
    if (length > plain.length - at) throw new ProtocolError('a header block is shorter than declared');
    at += length;
    return plain.subarray(at - length, at);
  };
  const number = (): number => take(4).readUInt32BE(0);
  const string = (): string => take(number()).toString('latin1');
  const count = number();
  if (count > MAX_HEADERS) throw new ProtocolError(`a header block has ${count} headers; ${MAX_HEADERS} are allowed`);
  const headers = new Map<string, string>();
  for (let index = 0; index < count; index++) {
    const [name, value] = [string(), string()];
    if (!/^[!-@[-~]+$/.test(name)) throw new ProtocolError('the name of a header is not in lower case');
    if (!/^[ -~]*$/.test(value)) throw new ProtocolError(`the header ${name} has a value that is not printable`);
    if (headers.has(name)) throw new ProtocolError(`duplicate header ${name}`);
    headers.set(name, value);
  }
  if (at < plain.length) throw new ProtocolError('a header block is longer than declared');
  return headers;
}
