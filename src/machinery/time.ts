/**
 * Converts between text and milliseconds. Times are milliseconds since the epoch in the engine and RFC 3339 strings in API objects;
 * durations are milliseconds in the engine and Go duration strings (1m30s) as text.
 */

/** A time in milliseconds since the epoch, or a duration in milliseconds. */
export type Millis = number;

const FIRST_TIME: Millis = Date.parse('0000-01-01T00:00:00Z');
/** The last whole second that RFC 3339 can represent: years have four digits. */
export const LAST_TIME: Millis = Date.parse('9999-12-31T23:59:59Z');

/** Whether RFC 3339 can represent the time. */
export const isWritableTime = (millis: Millis): boolean => millis >= FIRST_TIME && millis < LAST_TIME + 1000;

/**
 * Replaces a time that RFC 3339 cannot represent by FIRST_TIME or LAST_TIME. Such times occur because the periods in objects have no upper
 * limit. Date.toISOString() would throw for times after the year 275760.
 */
const isoTime = (millis: Millis): string =>
  new Date(isWritableTime(millis) ? millis : millis < FIRST_TIME ? FIRST_TIME : LAST_TIME).toISOString();

/** Caches the last result of formatTime(), because many objects are written in one second. */
let last = { second: Number.NaN, text: '' };

/** Formats a metav1.Time, rounded down to whole seconds: 2026-01-31T09:30:00Z. */
export function formatTime(millis: Millis): string {
  const second = Math.floor(millis / 1000);
  if (second !== last.second) last = { second, text: `${isoTime(millis).slice(0, 19)}Z` };
  return last.text;
}

/** Formats a metav1.MicroTime, rounded down to whole microseconds: 2026-01-31T09:30:00.123456Z. */
export function formatMicroTime(millis: Millis): string {
  const micros = isWritableTime(millis) ? Math.floor((millis - Math.floor(millis)) * 1000) : 0;
  return `${isoTime(millis).slice(0, 23)}${String(micros).padStart(3, '0')}Z`;
}

/** Returns undefined if the text is absent or not a time. Also accepts other formats than RFC 3339, as Date.parse() does. */
export function parseTime(text: string | undefined): Millis | undefined {
  if (text === undefined) return undefined;
  const millis = Date.parse(text);
  return Number.isNaN(millis) ? undefined : millis;
}

/** Formats a duration as Go does, rounded to nanoseconds: 1ns, 95ms, -1.5s, 1m0s, 2h0m0s. */
export function formatDuration(millis: Millis): string {
  if (millis < 0) return `-${formatDuration(-millis)}`;
  const nanos = Math.round(millis * 1_000_000);
  if (nanos > 0 && nanos < 1000) return `${nanos}ns`;
  if (nanos > 0 && nanos < 1_000_000) return `${nanos / 1000}\u00b5s`;
  if (millis > 0 && millis < 1000) return `${nanos / 1_000_000}ms`;
  const seconds = `${Number(((millis % 60_000) / 1000).toFixed(9))}s`;
  const minutes = Math.floor(millis / 60_000);
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

const UNIT_MILLIS: Readonly<Record<string, Millis>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  '\u00b5s': 1e-3,
  '\u03bcs': 1e-3,
  ns: 1e-6,
};
const DURATION = /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|[u\u00b5\u03bc]s|ms|s|m|h))+)$/;

/** Parses a Go duration such as 1h30m, 1.5s, -5s or 0; undefined if the text is not a duration. Source: Go's time.ParseDuration. */
export function parseDuration(text: string): Millis | undefined {
  if (/^[+-]?0$/.test(text)) return 0;
  const [, sign, parts = ''] = DURATION.exec(text) ?? [];
  if (parts === '') return undefined;
  let millis = 0;
  for (const [, amount, unit = ''] of parts.matchAll(/([\d.]+)(ns|[u\u00b5\u03bc]s|ms|s|m|h)/g)) {
    millis += Number(amount) * (UNIT_MILLIS[unit] ?? 0);
  }
  return sign === '-' ? -millis : millis;
}
