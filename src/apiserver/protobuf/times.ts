/** Converts times between RFC 3339 and the seconds and nanoseconds of protobuf, without losing microseconds. */
import { formatTime, parseTime } from '../../machinery/time.ts';

/** The seconds since 1970, which may be negative, and the nanoseconds. */
export interface Instant {
  seconds: number;
  nanos: number;
}

/** Returns the instant of an RFC 3339 text, to the microsecond; undefined if the text is not a time. */
export function instantOf(text: string): Instant | undefined {
  const millis = parseTime(text);
  if (millis === undefined) return undefined;
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? '';
  return { seconds: Math.floor(millis / 1000), nanos: Number(fraction.slice(0, 6).padEnd(6, '0')) * 1000 };
}

/** Formats the instant like metav1.Time, in whole seconds. */
export const timeText = ({ seconds }: Instant): string => formatTime(seconds * 1000);

/** Formats the instant like metav1.MicroTime, with six fractional digits. */
export function microTimeText(instant: Instant): string {
  const micros = Math.min(999_999, Math.max(0, Math.floor(instant.nanos / 1000)));
  return `${timeText(instant).slice(0, -1)}.${String(micros).padStart(6, '0')}Z`;
}
