/**
 * Decides which time of a schedule is due. Pure.
 * Source: mostRecentScheduleTime of pkg/controller/cronjob/utils.go of v1.33 (behavior).
 */
import type { Millis } from '../../machinery/time.ts';
import type { ScheduleTimes } from './schedule-times.ts';

/** More missed times than this are reported. */
const MANY = 100;
const SECOND: Millis = 1000;

export interface Missed {
  /** The latest time that has been reached; undefined if there is none. */
  latest?: Millis;
  /** Whether more than 100 times have been reached, estimated from the distance of the first two. */
  tooMany: boolean;
}

/**
 * Returns which times after `from` have been reached. Throws an Error if the schedule has fewer than two times. The search for the latest
 * time begins where the latest would be if all times had the same distance, as upstream: if the schedule has a gap, such as a
 * weekend, there may be no time after that point, and then none is due.
 */
export function missedTimes(times: ScheduleTimes, from: Millis, now: Millis): Missed {
  const first = times.next(from);
  if (first !== undefined && now < first) return { tooMany: false };
  const second = first === undefined ? undefined : times.next(first);
  if (first === undefined || second === undefined)
    throw new Error('time difference between two schedules is less than 1 second');
  if (now < second) return { latest: first, tooMany: false };
  const interval = second - first;
  const count = Math.floor((now - first) / interval) + 1;
  const latest = latestTime(times, first + (count - 2) * interval, now);
  return { ...(latest === undefined ? {} : { latest }), tooMany: count > MANY };
}

/** Returns the latest time after `after`, up to `until`, by bisection: there may be millions between them. */
export function latestTime(times: ScheduleTimes, after: Millis, until: Millis): Millis | undefined {
  let found = times.next(after);
  if (found === undefined || found > until) return undefined;
  for (let end = until; end - found >= SECOND; ) {
    const middle = Math.floor((found + end) / 2);
    const next = times.next(middle);
    if (next !== undefined && next <= until) found = next;
    else end = middle;
  }
  return found;
}
