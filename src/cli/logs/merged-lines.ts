/** Splits logs into whole lines with prefixes, so that the lines of several logs can be written to one output. Pure. */

export interface LineFormat {
  prefix: string;
  timestamps: boolean;
}

export interface LineSplitter {
  /** Returns the lines that the chunk completes. */
  feed(chunk: Buffer): Buffer;
  /** Returns the last line of a log that has ended without a newline; empty if there is none. */
  end(): Buffer;
}

const NEWLINE = 0x0a;
const SPACE = 0x20;

/**
 * Splits logs whose lines begin with timestamps. Call begin() for each read of the container's logs. Lines that are not later than the
 * last line of the previous reads are omitted, because consecutive reads of a log may overlap.
 */
export function createTimedLines(format: LineFormat): { begin(): LineSplitter } {
  let latest = '';
  return {
    begin() {
      const alreadyPrinted = latest;
      return splitter(format.prefix, (line) => {
        const afterTime = line.indexOf(SPACE);
        const time = line.toString('latin1', 0, Math.max(0, afterTime));
        if (time <= alreadyPrinted) return undefined;
        latest = time;
        return format.timestamps ? line : line.subarray(afterTime + 1);
      });
    },
  };
}

export const createLines = (prefix: string): LineSplitter => splitter(prefix, (line) => line);

/** `shown` returns the text to print for a line; undefined to omit the line. */
function splitter(prefix: string, shown: (line: Buffer) => Buffer | undefined): LineSplitter {
  let rest: Buffer = Buffer.alloc(0);
  const before = Buffer.from(prefix);
  const after = Buffer.from('\n');
  const parts = (line: Buffer): Buffer[] => {
    const text = shown(line);
    return text === undefined ? [] : [before, text, after];
  };
  return {
    feed(chunk) {
      const output: Buffer[] = [];
      let data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE)) {
        output.push(...parts(data.subarray(0, end)));
        data = data.subarray(end + 1);
      }
      rest = data;
      return Buffer.concat(output);
    },
    end() {
      const line = rest;
      rest = Buffer.alloc(0);
      return line.length === 0 ? line : Buffer.concat(parts(line));
    },
  };
}

const COLORS = [36, 33, 32, 35, 34, 96, 93, 92, 95, 94];

export const colored = (text: string, index: number): string =>
  `\u001b[${COLORS[index % COLORS.length]}m${text}\u001b[0m`;
