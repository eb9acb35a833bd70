/**
 * Computes the times of a schedule. The functions are pure, and bounded: a call computes at most some dozens of times, whatever the
 * schedule is.
 *
 * Source: Next of SpecSchedule and ConstantDelaySchedule of github.com/robfig/cron v3, which v1.33 uses (behavior). croner computes the
 * minutes at which the clock of a time zone matches the fields. When the clock changes, croner itself would run a skipped time after the
 * change, and a repeated time once. v1.33 does not run a skipped time, and runs a repeated time twice. Therefore croner computes with a
 * clock that never changes, and this file converts the times.
 */
import { Cron } from 'croner';
import type { Schedule, ScheduleField } from '../../api/batch/v1/cron-job/schedule.ts';
import type { Millis } from '../../machinery/time.ts';
import { offsetAt, offsetChange } from './local-time.ts';

export interface ScheduleTimes {
  /** Returns the first time after `after`; undefined if there is none within five years. */
  next(after: Millis): Millis | undefined;
}

/** A schedule without a time within this number of years counts as a schedule without times. */
const YEARS = 5;
const SECOND: Millis = 1000;

/**
 * Returns the times of the schedule. `timeZone` must be known to Intl.
 * `anchor`: the time from which `@every` counts: the last scheduled time, or the creation of the CronJob. Upstream counts from the starting
 * deadline if that is later, so that a CronJob whose deadline is shorter than its period never starts a Job.
 */
export function scheduleTimes({ every, fields }: Schedule, timeZone: string, anchor: Millis): ScheduleTimes {
  if (every !== undefined) return everyFrom(Math.floor(anchor / SECOND) * SECOND, every);
  const pattern = patternOf(fields);
  if (pattern === undefined) return { next: () => undefined };
  const cron = new Cron(pattern, { mode: '5-part', domAndDow: false, utcOffset: 0, paused: true });
  const nextLocal = (after: Millis): Millis | undefined => cron.nextRun(new Date(after))?.getTime();
  return { next: (after) => nextInZone(nextLocal, timeZone, Math.max(0, after)) };
}

const everyFrom = (anchor: Millis, every: Millis): ScheduleTimes => ({
  next: (after) => anchor + (Math.max(0, Math.floor((after - anchor) / every)) + 1) * every,
});

/**
 * Returns the first match after `after`, or undefined if there is none within YEARS. Searches the periods between the changes of the clock,
 * one after the other, because the offset is constant only within a period.
 */
function nextInZone(
  nextLocal: (after: Millis) => Millis | undefined,
  timeZone: string,
  after: Millis,
): Millis | undefined {
  const lastYear = new Date(after).getUTCFullYear() + YEARS;
  for (let from = after, begin = after; ; ) {
    const offset = offsetAt(timeZone, begin);
    const local = nextLocal(from + offset);
    if (local === undefined || new Date(local).getUTCFullYear() > lastYear) return undefined;
    const change = timeZone === 'UTC' ? undefined : offsetChange(timeZone, begin, local - offset);
    if (change === undefined) return local - offset;
    // The minute in which the clock changes may match as well.
    begin = change;
    from = change - 1;
  }
}

/** Returns the fields as a pattern of croner; undefined if they match nothing. */
function patternOf([minutes, hours, days, months, weekdays]: readonly ScheduleField[]): string | undefined {
  const others = [minutes, hours, months];
  if (others.some((field) => field?.values.length === 0)) return undefined;
  const [day, weekday] = daysOf(days, weekdays);
  if (day === undefined || weekday === undefined) return undefined;
  return [listOf(minutes), listOf(hours), day, listOf(months), weekday].join(' ');
}

/**
 * Returns the two fields for croner; [undefined] if no day matches. If one of the fields is any day, the other decides; otherwise a day
 * must match one of them. A field without values matches no day, which croner cannot express.
 */
function daysOf(days: ScheduleField | undefined, weekdays: ScheduleField | undefined): (string | undefined)[] {
  const isEmpty = (field: ScheduleField | undefined): boolean => field?.values.length === 0;
  const anyOf = (field: ScheduleField | undefined): string => (field?.isAny === true ? '*' : listOf(field));
  if (!isEmpty(days) && !isEmpty(weekdays)) return [anyOf(days), anyOf(weekdays)];
  if (days?.isAny === true || weekdays?.isAny === true || (isEmpty(days) && isEmpty(weekdays))) return [undefined];
  return isEmpty(days) ? ['*', listOf(weekdays)] : [listOf(days), '*'];
}

const listOf = (field: ScheduleField | undefined): string => (field?.values ?? []).join(',');
