/** Converts between times and the clocks of time zones. The functions are pure. */
import type { Millis } from '../../machinery/time.ts';

/** Limits the cache of formats, one per time zone: each takes some 30 KB, and clients choose the time zones. */
const MOST_FORMATS = 40;
/** The step of the search for a change of the offset. Assumes that no time zone changes its offset twice within this time. */
const STEP: Millis = 7 * 24 * 3_600_000;

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const created = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  if (formats.size >= MOST_FORMATS) formats.clear();
  formats.set(timeZone, created);
  return created;
}

/** Returns how far the clock of the time zone is ahead of UTC, in milliseconds. Throws a RangeError for an unknown time zone. */
export function offsetAt(timeZone: string, at: Millis): Millis {
  if (timeZone === 'UTC') return 0;
  const [, sign, hours, minutes, seconds = 0] =
    /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(formatOf(timeZone).format(at)) ?? [];
  if (sign === undefined) return 0;
  const offset = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  return sign === '-' ? -offset : offset;
}

/** Returns the first time in (`from`, `to`] at which the offset differs from the offset at `from`; undefined if there is none. */
export function offsetChange(timeZone: string, from: Millis, to: Millis): Millis | undefined {
  const offset = offsetAt(timeZone, from);
  for (let same = from; same < to; ) {
    let changed = Math.min(same + STEP, to);
    if (offsetAt(timeZone, changed) === offset) {
      same = changed;
      continue;
    }
    while (changed - same > 1) {
      const middle = Math.floor((same + changed) / 2);
      if (offsetAt(timeZone, middle) === offset) same = middle;
      else changed = middle;
    }
    return changed;
  }
  return undefined;
}

/** Formats the time with the offset of the time zone, as in RFC 3339: 2026-01-31T09:30:00+01:00, or Z without an offset. */
export function formatLocalTime(timeZone: string, at: Millis): string {
  const offset = offsetAt(timeZone, at);
  const local = new Date(at + offset).toISOString().slice(0, 19);
  if (offset === 0) return `${local}Z`;
  const minutes = Math.floor(Math.abs(offset) / 60_000);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${local}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
