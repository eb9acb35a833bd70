/**
 * Decides which scheduled time is due. The functions are pure.
 * Source: mostRecentScheduleTime of pkg/controller/cronjob/utils.go of v1.33 (behavior).
 */
import type { Millis } from '../../machinery/time.ts';
import type { ScheduleTimes } from './schedule-times.ts';

/** If more scheduled times than this have passed, `tooMany` is set. */
const MANY = 100;
const SECOND: Millis = 1000;

export interface Missed {
  /** The latest scheduled time that is due; undefined if none is. */
  latest?: Millis;
  /** Whether more than MANY scheduled times have passed. Estimated from the interval between the first two. */
  tooMany: boolean;
}

/**
 * Finds the scheduled times after `from` that have passed. Throws an Error if there is no first one, or if the first one has passed and
 * there is no second one. As upstream, assumes equal intervals to find where the search for the latest time begins. If the schedule has a
 * gap, such as a weekend, no time may follow that point, and then none is due.
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

/**
 * Returns the latest scheduled time in (`after`, `until`]; undefined if there is none. Bisects, because there may be millions of scheduled
 * times.
 */
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
