/** Puts the lines of several logs into one output: none is cut by another's, each says whose it is. Pure. */

export interface LineFormat {
  /** Before each line; already coloured. */
  prefix: string;
  /** Whether the time that each line begins with is printed. */
  timestamps: boolean;
}

export interface LineSplitter {
  /** What can be printed now: whole lines. */
  feed(chunk: Buffer): Buffer;
  /** The rest of a log that has ended, as a line. */
  end(): Buffer;
}

const NEWLINE = 0x0a;
const SPACE = 0x20;

/**
 * Of a log whose lines begin with their times. A line that is not later than the last one of an earlier log of the same
 * container is left out: of two logs that follow each other, the second may begin with what the first has told.
 */
export function createTimedLines(format: LineFormat): { begin(): LineSplitter } {
  let latest = '';
  return {
    begin() {
      const told = latest;
      return splitter(format.prefix, (line) => {
        const afterTime = line.indexOf(SPACE);
        const time = line.toString('latin1', 0, Math.max(0, afterTime));
        if (time <= told) return undefined;
        latest = time;
        return format.timestamps ? line : line.subarray(afterTime + 1);
      });
    },
  };
}

export const createLines = (prefix: string): LineSplitter => splitter(prefix, (line) => line);

/** `shown`: undefined leaves the line out. */
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

/** Of a container's name in a prefix; they are told apart on dark and on light ground. */
const COLOURS = [36, 33, 32, 35, 34, 96, 93, 92, 95, 94];

/** `index`: the container's place in the order of its Pod. */
export const coloured = (text: string, index: number): string =>
  `\u001b[${COLOURS[index % COLOURS.length]}m${text}\u001b[0m`;
