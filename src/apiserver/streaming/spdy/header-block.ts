/**
 * SPDY/3 header blocks. The protocol wants them compressed, all of a connection as one zlib stream over a preset
 * dictionary; what is said here is a few bytes, so it goes into blocks that are merely stored (RFC 1951, section 3.2.4).
 */

/** zlib's head (RFC 1950): deflate, a preset dictionary, and the Adler-32 of SPDY/3's. Once a connection. */
export const firstHeaderBlockPrefix: Buffer = Buffer.from('7820e3c6a7c2', 'hex');

/** An empty stored block: the reader has all that came before it. */
const FLUSH = Buffer.from('000000ffff', 'hex');
const MAX_STORED_BYTES = 0xffff;

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Names in lower case. Throws a RangeError beyond 64 KiB. */
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
