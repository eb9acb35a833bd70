/** Parses the terminal sizes on a client's resize stream: consecutive JSON objects, split at any point. */
import { ProtocolError } from './protocol-error.ts';

/** A runtime reads an object until it is complete, however long it is. Clients send about 30 bytes. */
const MAX_SIZE_BYTES = 1024;
/** The limit on the sizes in one message: about 6,000 sizes, which take 5 ms to parse. */
const MAX_READ_BYTES = 128 * 1024;
const MAX_EDGE = 65_535;

/**
 * Returns a function that takes the next bytes of a stream, and returns the sizes that these bytes complete, encoded as one line of JSON
 * each. The function throws a ProtocolError if a size is not valid, or if MAX_READ_BYTES or MAX_SIZE_BYTES is exceeded.
 */
export function createSizeReader(): (bytes: Uint8Array) => Buffer {
  let held = '';
  return (bytes) => {
    if (bytes.length > MAX_READ_BYTES) {
      throw new ProtocolError(`the sizes of a terminal have more than ${MAX_READ_BYTES} bytes in one message`);
    }
    const sizes: string[] = [];
    held += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    let from = 0;
    for (let end = held.indexOf('}'); end >= 0; end = held.indexOf('}', from)) {
      sizes.push(sizeOf(held.slice(from, end + 1)));
      from = end + 1;
    }
    held = held.slice(from).trimStart();
    if (held.length > MAX_SIZE_BYTES)
      throw new ProtocolError(`the size of a terminal has more than ${MAX_SIZE_BYTES} bytes`);
    return Buffer.from(sizes.join(''));
  };
}

/**
 * `text` ends with the first closing brace: a valid size has neither an inner object nor a brace in a string. Throws a ProtocolError if the
 * size is not valid.
 */
function sizeOf(text: string): string {
  const edge = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_EDGE;
  try {
    const { Width, Height } = JSON.parse(text.slice(0, MAX_SIZE_BYTES)) as Record<string, unknown>;
    if (edge(Width) && edge(Height)) return `${JSON.stringify({ Width, Height })}\n`;
  } catch {
    // Invalid JSON is refused below.
  }
  throw new ProtocolError('the size of a terminal is not an object with Width and Height');
}
