/** Line-delimited JSON from chunks that end anywhere, also inside a character. */
import { StringDecoder } from 'node:string_decoder';

/** Feed it chunks; `sink` gets the value of each whole line. Throws SyntaxError on a line that is no JSON. */
export function jsonLines(sink: (value: unknown) => void): (chunk: Uint8Array) => void {
  const decoder = new StringDecoder('utf8');
  /** What has come of the line that is not whole yet. */
  let begun: string[] = [];
  return (chunk) => {
    const text = decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      const line = begun.join('') + text.slice(start, end);
      begun = [];
      start = end + 1;
      if (line.trim() !== '') sink(JSON.parse(line));
    }
    if (start < text.length) begun.push(text.slice(start));
  };
}
