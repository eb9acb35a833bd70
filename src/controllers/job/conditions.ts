/**
 * Defines and sets the conditions of a Job, with the reasons and messages of upstream. The functions are pure.
 * Source: pkg/controller/job/job_controller.go of v1.33 (behavior and wording).
 */
import type { Job, JobCondition, JobStatus } from '../../api/generated/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

export interface Verdict {
  /** The condition that announces the end before all Pods are counted. */
  type: 'SuccessCriteriaMet' | 'FailureTarget';
  reason: string;
  message: string;
}

export const failure = (reason: string, message: string): Verdict => ({ type: 'FailureTarget', reason, message });

export const success = (reason: string, message: string): Verdict => ({ type: 'SuccessCriteriaMet', reason, message });

export const COMPLETIONS_REACHED = success('CompletionsReached', 'Reached expected number of succeeded pods');

export const trueCondition = ({ status }: Pick<Job, 'status'>, type: string): JobCondition | undefined =>
  (status?.conditions ?? []).find((each) => each.type === type && each.status === 'True');

/** Whether the Job has ended and all its Pods are counted. */
export const isFinished = (job: Pick<Job, 'status'>): boolean =>
  trueCondition(job, 'Complete') !== undefined || trueCondition(job, 'Failed') !== undefined;

/** Returns the verdict that the status announces; undefined if there is none. */
export function storedVerdict(job: Job): Verdict | undefined {
  for (const type of ['SuccessCriteriaMet', 'FailureTarget'] as const) {
    const condition = trueCondition(job, type);
    if (condition !== undefined) return { type, reason: condition.reason ?? '', message: condition.message ?? '' };
  }
  return undefined;
}

interface NewCondition {
  type: string;
  status: 'True' | 'False';
  reason: string;
  message: string;
}

/** Adds or replaces the condition. Returns the same list if nothing changes. A new condition with the status False is not added. */
export function withCondition(
  conditions: JobCondition[],
  { type, status, reason, message }: NewCondition,
  now: Millis,
): JobCondition[] {
  const old = conditions.find((each) => each.type === type);
  if (old?.status === status && old.reason === reason && old.message === message) return conditions;
  if (old === undefined && status === 'False') return conditions;
  const time = formatTime(now);
  const changed = { type, status, lastProbeTime: time, lastTransitionTime: time, reason, message };
  return old === undefined ? [...conditions, changed] : conditions.map((each) => (each === old ? changed : each));
}

export function withVerdict(status: JobStatus, { type, reason, message }: Verdict, now: Millis): JobStatus {
  const conditions = status.conditions ?? [];
  if (conditions.some((each) => each.type === type && each.status === 'True')) return status;
  return { ...status, conditions: withCondition(conditions, { type, status: 'True', reason, message }, now) };
}

/** Adds the condition Complete or Failed, which makes the Job finished. */
export function withEnd(status: JobStatus, { type, reason, message }: Verdict, now: Millis): JobStatus {
  const last = type === 'SuccessCriteriaMet' ? 'Complete' : 'Failed';
  const conditions = withCondition(status.conditions ?? [], { type: last, status: 'True', reason, message }, now);
  const { startTime = formatTime(now) } = status;
  const completion = last === 'Complete' ? { completionTime: formatTime(now) } : {};
  return { ...status, startTime, conditions, ...completion };
}

export const SUSPENDED: NewCondition = {
  type: 'Suspended',
  status: 'True',
  reason: 'JobSuspended',
  message: 'Job suspended',
};
export const RESUMED: NewCondition = {
  type: 'Suspended',
  status: 'False',
  reason: 'JobResumed',
  message: 'Job resumed',
};
