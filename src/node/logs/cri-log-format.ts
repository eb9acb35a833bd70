/**
 * Parses the log format of CRI runtimes: `<RFC 3339 time> <stdout|stderr> <P|F> <content>`, one record per line. A long line of the
 * container is split into several records, of which all but the last are marked P.
 * Source: CRI's log format (docs/proposals/…/kubelet-cri-logging); kubectl's output of v1.33.
 */
import type { LogOptions } from '../../ports/node-connection.ts';

export interface LogFormat {
  timestamps: boolean;
  /**
   * In milliseconds since the epoch. Records before the first record with this time or a later one are omitted. Absent: all records are
   * included.
   */
  sinceMillis?: number;
  stream: 'All' | 'Stdout' | 'Stderr';
}

/**
 * `now`, in milliseconds since the epoch, is the time to which sinceSeconds is relative. sinceTime takes precedence over sinceSeconds; if
 * sinceTime is not a valid time, all records are included.
 */
export function logFormat(options: LogOptions, now: number): LogFormat {
  const since =
    options.sinceTime === undefined
      ? options.sinceSeconds === undefined
        ? undefined
        : now - options.sinceSeconds * 1000
      : Date.parse(options.sinceTime);
  return {
    timestamps: options.timestamps ?? false,
    stream: options.stream ?? 'All',
    sinceMillis: since === undefined || Number.isNaN(since) ? undefined : since,
  };
}

const SPACE = 0x20;
const NEWLINE = 0x0a;
/**
 * A record is dropped if more than this many bytes were read without its end, to limit the use of memory. containerd splits lines at 16
 * KiB.
 */
const MAX_RECORD_BYTES = 1 << 20;

/**
 * The returned function converts consecutive chunks of a log file into the output for the client. It omits malformed records. An incomplete
 * record is kept until its rest arrives.
 */
export function createLogParser(format: LogFormat): (bytes: Buffer) => Buffer {
  let rest = Buffer.alloc(0);
  let dropping = false;
  let { sinceMillis } = format;
  /** The streams whose last record was marked P. The timestamp of their current line has already been printed. */
  const midLine = new Set<string>();

  function record(line: Buffer): Buffer[] {
    const afterTime = line.indexOf(SPACE);
    const afterStream = line.indexOf(SPACE, afterTime + 1);
    if (afterTime < 0 || afterStream < 0) return [];
    const found = line.indexOf(SPACE, afterStream + 1);
    const afterTags = found < 0 ? line.length : found;
    const stream = line.toString('latin1', afterTime + 1, afterStream);
    if (stream !== 'stdout' && stream !== 'stderr') return [];
    const time = line.toString('latin1', 0, afterTime);
    if (sinceMillis !== undefined) {
      const at = Date.parse(time);
      if (Number.isNaN(at) || at < sinceMillis) return [];
      // Times are assumed not to decrease, so later records are not checked.
      sinceMillis = undefined;
    }
    if (format.stream !== 'All' && format.stream.toLowerCase() !== stream) return [];
    const partial = line.toString('latin1', afterStream + 1, afterTags).split(':')[0] === 'P';
    const parts: Buffer[] = [];
    if (format.timestamps && !midLine.has(stream)) parts.push(Buffer.from(`${fixedTime(time)} `, 'latin1'));
    parts.push(line.subarray(afterTags + 1));
    if (partial) midLine.add(stream);
    else {
      midLine.delete(stream);
      parts.push(newline);
    }
    return parts;
  }

  return (bytes) => {
    const output: Buffer[] = [];
    let data = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE)) {
      if (dropping) dropping = false;
      else output.push(...record(data.subarray(0, end)));
      data = data.subarray(end + 1);
    }
    if (data.length > MAX_RECORD_BYTES) {
      dropping = true;
      data = data.subarray(data.length);
    }
    // Copy the rest, because the caller reuses the buffer.
    rest = Buffer.from(data);
    return Buffer.concat(output);
  };
}

const newline = Buffer.from('\n');

/** Upstream prints nine digits of the fraction, however many digits the runtime wrote. */
const fixedTime = (time: string): string =>
  time.replace(/^(.{19})(?:\.(\d+))?/, (_, seconds: string, fraction = '') => `${seconds}.${fraction.padEnd(9, '0')}`);
