/**
 * Computes the times of a schedule. The functions are pure. A call computes at most some dozens of times, whatever the schedule is.
 *
 * Source: Next of SpecSchedule and ConstantDelaySchedule of github.com/robfig/cron v3, which v1.33 uses (behavior). When the clock of a
 * time zone changes, v1.33 drops a skipped time and runs a repeated time twice. croner would run the skipped time after the change, and the
 * repeated time once. Therefore croner computes in a clock that never changes, and this file converts the times.
 */
import { Cron } from 'croner';
import type { Schedule, ScheduleField } from '../../api/batch/v1/cron-job/schedule.ts';
import type { Millis } from '../../machinery/time.ts';
import { offsetAt, offsetChange } from './local-time.ts';

export interface ScheduleTimes {
  /** Returns the first scheduled time after `after`; undefined if there is none within five years. */
  next(after: Millis): Millis | undefined;
}

/** If there is no scheduled time within this number of years, the schedule counts as empty. */
const YEARS = 5;
const SECOND: Millis = 1000;

/**
 * Returns the times of the schedule. `timeZone` must be known to Intl. `anchor`: the time from which `@every` counts: the last scheduled
 * time, or the creation of the CronJob. Upstream counts from the starting deadline if that is later. There, a CronJob whose starting
 * deadline is shorter than its period never starts a Job.
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
 * Returns the first scheduled time after `after`; undefined if there is none within YEARS. Searches one period between two clock changes
 * after the other, because the offset is constant within a period.
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

/** Returns a croner pattern; undefined if the fields match nothing. */
function patternOf([minutes, hours, days, months, weekdays]: readonly ScheduleField[]): string | undefined {
  const others = [minutes, hours, months];
  if (others.some((field) => field?.values.length === 0)) return undefined;
  const [day, weekday] = daysOf(days, weekdays);
  if (day === undefined || weekday === undefined) return undefined;
  return [listOf(minutes), listOf(hours), day, listOf(months), weekday].join(' ');
}

/**
 * Returns the day and weekday fields for croner; [undefined] if no day matches. If one field is `*`, the other decides. Otherwise, one
 * match is sufficient. croner cannot express a field without values.
 */
function daysOf(days: ScheduleField | undefined, weekdays: ScheduleField | undefined): (string | undefined)[] {
  const isEmpty = (field: ScheduleField | undefined): boolean => field?.values.length === 0;
  const anyOf = (field: ScheduleField | undefined): string => (field?.isAny === true ? '*' : listOf(field));
  if (!isEmpty(days) && !isEmpty(weekdays)) return [anyOf(days), anyOf(weekdays)];
  if (days?.isAny === true || weekdays?.isAny === true || (isEmpty(days) && isEmpty(weekdays))) return [undefined];
  return isEmpty(days) ? ['*', listOf(weekdays)] : [listOf(days), '*'];
}

const listOf = (field: ScheduleField | undefined): string => (field?.values ?? []).join(',');
