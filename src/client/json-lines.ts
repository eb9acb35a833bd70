import { StringDecoder } from 'node:string_decoder';

/**
 * Returns a function that takes chunks, which may end even inside a character, and passes the JSON value of each complete, non-blank line
 * to `sink`. The function throws SyntaxError on invalid JSON.
 */
export function jsonLines(sink: (value: unknown) => void): (chunk: Uint8Array) => void {
  const decoder = new StringDecoder('utf8');
  let pending: string[] = [];
  return (chunk) => {
    const text = decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      const line = pending.join('') + text.slice(start, end);
      pending = [];
      start = end + 1;
      if (line.trim() !== '') sink(JSON.parse(line));
    }
    if (start < text.length) pending.push(text.slice(start));
  };
}
