/**
 * Decides about a CronJob: its status, which Jobs to delete, and whether to start a Job. The functions are pure.
 *
 * A Job that was created before a crash, but is not in the status yet, is recognized by its name and annotation. Its scheduled time counts
 * as started, even if the Job has already finished and exceeds the history limit. Therefore no scheduled time is started twice.
 * Source: syncCronJob of pkg/controller/cronjob/cronjob_controllerv2.go of v1.33 (behavior and wording).
 */
import { parseSchedule } from '../../api/batch/v1/cron-job/schedule.ts';
import { isTimeZone } from '../../api/batch/v1/cron-job/time-zones.ts';
import type { CronJob, CronJobStatus, Job, ObjectReference } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { formatTime, type Millis, parseTime } from '../../machinery/time.ts';
import { endOf, exceedingJobs, jobName, jobOf, referenceTo, scheduledTimeOf } from './jobs.ts';
import { latestTime, missedTimes } from './missed-times.ts';
import { type ScheduleTimes, scheduleTimes } from './schedule-times.ts';

const SECOND: Millis = 1000;

export interface CronJobInput {
  cronJob: CronJob;
  jobs: readonly Job[];
  /** Whether the API no longer has the Job. Called for Jobs in the status that are not in `jobs`. */
  isMissing(job: ObjectReference): boolean;
  now: Millis;
  /** The time zone of schedules without one. */
  localZone: string;
  /** The latest scheduled time for which an Event MissSchedule was sent. */
  reported?: Millis | undefined;
}

export interface Note {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

export interface Start {
  scheduled: Millis;
  job: Job;
  /** Running Jobs that must be deleted before the new Job starts. */
  replaced: readonly ObjectReference[];
}

export interface Decision {
  notes: Note[];
  /** Must be written before a Job is deleted or started. */
  status: CronJobStatus;
  remove: Job[];
  start?: Start;
  /** A scheduled time that missed its starting deadline. `notes` contains its Event MissSchedule. */
  missed?: Millis;
}

const warning = (reason: string, message: string): Note => ({ type: 'Warning', reason, message });
const normal = (reason: string, message: string): Note => ({ type: 'Normal', reason, message });

export function reconcile(input: CronJobInput): Decision {
  const { cronJob, jobs } = input;
  const { status, notes } = learn(input);
  const decision: Decision = { notes, status, remove: exceedingJobs(cronJob, jobs) };
  if (cronJob.metadata.deletionTimestamp !== undefined || cronJob.spec?.suspend === true) return decision;
  const known = { ...cronJob, status };
  const times = timesOf(known, input.localZone);
  if (!('next' in times)) {
    notes.push(times);
    return decision;
  }
  return { ...decision, ...schedule({ ...input, cronJob: known }, times, notes) };
}

function learn({ cronJob, jobs, isMissing }: CronJobInput): { status: CronJobStatus; notes: Note[] } {
  const notes: Note[] = [];
  const status: CronJobStatus = { ...cronJob.status };
  const active = new Map((status.active ?? []).map((job) => [job.uid, job]));
  const existing = new Set(jobs.map(uidOf));
  for (const job of jobs) {
    const scheduled = scheduledTimeOf(job, cronJob);
    if (scheduled !== undefined && scheduled > (parseTime(status.lastScheduleTime) ?? 0))
      status.lastScheduleTime = formatTime(scheduled);
    const end = endOf(job);
    if (end === undefined) {
      if (active.has(uidOf(job)) || job.metadata.deletionTimestamp !== undefined) continue;
      if (scheduled !== undefined) active.set(uidOf(job), referenceTo(job));
      else
        notes.push(
          warning('UnexpectedJob', `Saw a job that the controller did not create or forgot: ${job.metadata.name}`),
        );
      continue;
    }
    if (active.delete(uidOf(job)))
      notes.push(normal('SawCompletedJob', `Saw completed job: ${job.metadata.name}, condition: ${end.type}`));
    const completed = end.type === 'Complete' ? parseTime(job.status?.completionTime) : undefined;
    if (completed !== undefined && completed > (parseTime(status.lastSuccessfulTime) ?? 0))
      status.lastSuccessfulTime = formatTime(completed);
  }
  for (const [uid, job] of active) {
    if (existing.has(uid ?? '') || !isMissing(job)) continue;
    active.delete(uid);
    notes.push(normal('MissingJob', `Active job went missing: ${job.name}`));
  }
  return { status: withActive(status, [...active.values()]), notes };
}

/** Returns the status with this list of active Jobs. Omits an empty list, as the API does. */
export function withActive({ active: _, ...status }: CronJobStatus, active: ObjectReference[]): CronJobStatus {
  return active.length === 0 ? status : { active, ...status };
}

/** Returns the time after which a scheduled time can be due. */
const earliestOf = ({ metadata, status }: CronJob): Millis =>
  parseTime(status?.lastScheduleTime) ?? parseTime(metadata.creationTimestamp) ?? 0;

function timesOf(cronJob: CronJob, localZone: string): ScheduleTimes | Note {
  const { schedule: text = '', timeZone } = cronJob.spec ?? {};
  if (timeZone !== undefined && !isTimeZone(timeZone))
    return warning('UnknownTimeZone', `invalid timeZone: ${JSON.stringify(timeZone)}: unknown time zone ${timeZone}`);
  const parsed = parseSchedule(text);
  const zone = typeof parsed === 'string' ? undefined : (parsed.timeZone ?? timeZone ?? localZone);
  const isKnown = typeof parsed === 'string' || parsed.timeZone === undefined || isTimeZone(parsed.timeZone);
  if (typeof parsed === 'string' || zone === undefined || !isKnown) {
    const why = typeof parsed === 'string' ? parsed : `provided bad location ${zone}: unknown time zone ${zone}`;
    return warning('UnparseableSchedule', `unparseable schedule: ${JSON.stringify(text)} : ${why}`);
  }
  return scheduleTimes(parsed, zone, earliestOf(cronJob));
}

/**
 * Returns the next scheduled time, at which the CronJob must be reconciled; undefined if there is none, the schedule is invalid, or the
 * CronJob is suspended or being deleted.
 */
export function nextStart(cronJob: CronJob, now: Millis, localZone: string): Millis | undefined {
  if (cronJob.metadata.deletionTimestamp !== undefined || cronJob.spec?.suspend === true) return undefined;
  const times = timesOf(cronJob, localZone);
  return 'next' in times ? times.next(Math.max(now, earliestOf(cronJob))) : undefined;
}

/**
 * Decides whether a scheduled time is due and its Job may start, and adds Events about the decision to `notes`. Upstream never sends the
 * Event MissSchedule, because it considers only times within the starting deadline.
 */
function schedule(
  { cronJob, jobs, now, reported }: CronJobInput,
  times: ScheduleTimes,
  notes: Note[],
): Pick<Decision, 'start' | 'missed'> {
  const { schedule: text = '', startingDeadlineSeconds, concurrencyPolicy } = cronJob.spec ?? {};
  const earliest = earliestOf(cronJob);
  const deadline = startingDeadlineSeconds === undefined ? earliest : now - startingDeadlineSeconds * SECOND;
  let due: ReturnType<typeof missedTimes>;
  try {
    due = missedTimes(times, Math.max(earliest, deadline), now);
  } catch (error) {
    notes.push(warning('InvalidSchedule', `invalid schedule: ${text} : ${(error as Error).message}`));
    return {};
  }
  const scheduled = due.latest;
  if (scheduled === undefined) {
    const missed = deadline > earliest ? latestTime(times, earliest, Math.min(deadline, now)) : undefined;
    if (missed === undefined || missed <= (reported ?? 0)) return {};
    const shown = new Date(missed).toUTCString().replace('GMT', '+0000');
    notes.push(warning('MissSchedule', `Missed scheduled time to start a job: ${shown}`));
    return { missed };
  }
  if (due.tooMany) {
    const advice = 'Set or decrease .spec.startingDeadlineSeconds or check clock skew';
    notes.push(warning('TooManyMissedTimes', `too many missed start times. ${advice}`));
  }
  const name = jobName(cronJob, scheduled);
  if (jobs.some(({ metadata }) => metadata.name === name)) return {};
  const active = cronJob.status?.active ?? [];
  if (concurrencyPolicy === 'Forbid' && active.length > 0) {
    const why = 'prior execution is running and concurrency policy is Forbid';
    notes.push(normal('JobAlreadyActive', `Not starting job because ${why}`));
    return {};
  }
  const replaced = concurrencyPolicy === 'Replace' ? active : [];
  return { start: { scheduled, job: jobOf(cronJob, scheduled), replaced } };
}
