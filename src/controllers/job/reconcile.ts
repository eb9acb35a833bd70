/**
 * Decides what to do for a Job: which Pods to create, delete and count, and the status. The functions are pure.
 *
 * The status of a decision is written after its creations and deletions, and before the finalizers of `untrack` are removed. The decision
 * after that counts these Pods, and ends the Job once no Pod is active, terminating or not yet counted.
 * Source: syncJob of pkg/controller/job/job_controller.go of v1.33 (behavior and wording).
 */
import type { JobStatus, Pod } from '../../api/generated/types.ts';
import type { EventDraft } from '../../api/kind.ts';
import { defined } from '../../machinery/drop-undefined.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { isMarked } from '../ownership/deletion-mark.ts';
import { isPodReady } from '../ownership/pod-state.ts';
import type { DeletionReason } from '../ownership/pods-of-owner.ts';
import type { BackOff } from './back-off.ts';
import {
  COMPLETIONS_REACHED,
  RESUMED,
  SUSPENDED,
  storedVerdict,
  trueCondition,
  type Verdict,
  withCondition,
  withEnd,
  withVerdict,
} from './conditions.ts';
import { delayedPods } from './delayed.ts';
import { isTerminating, isTracked, type NewPod } from './job-pods.ts';
import { manage, type PodChanges } from './manage.ts';
import { track } from './tracking.ts';
import { deadlineOf, verdictOf } from './verdict.ts';
import { type JobInput, type JobView, viewOf } from './view.ts';

export interface Decision {
  create: readonly NewPod[];
  remove: readonly Pod[];
  /** Why the Pods are deleted. With ScaledDown, the Pods lose their finalizers first and are not counted. */
  reason: DeletionReason;
  /** Pods that this controller has marked with a reason before a crash or a failed delete, and that it no longer deletes. */
  unmark: readonly Pod[];
  /** Active Pods without the finalizer that are not deleted now: an engine ended after it had removed the finalizer for a delete. */
  retrack: readonly Pod[];
  /** The status, if all creations succeed. */
  status: JobStatus;
  /** The Pods that lose their finalizers once the status is written. */
  untrack: readonly Pod[];
  /** The Events about the new status. */
  events: readonly EventDraft[];
  /** The back-off after the status is written. */
  backOff: BackOff;
  /** When the back-off or activeDeadlineSeconds ends first, so that a decision is due; undefined if neither is awaited or the Job ends. */
  checkAt: Millis | undefined;
}

export function reconcile(input: JobInput): Decision {
  const view = begun(viewOf(input));
  const { job } = view;
  const early = verdictOf(view);
  const delayed = delayedPods(view);
  const changes = changesOf(view, early, delayed);
  const isManaged = early === undefined && job.metadata.deletionTimestamp === undefined;
  const verdict = early ?? (isComplete(view, changes) ? COMPLETIONS_REACHED : undefined);
  const { status: tracked, untrack } = track(view, verdict, new Set(delayed.values()));
  const status = { ...tracked, ...counts(view, changes) };
  const isAtRest = status.active === 0 && status.terminating === 0 && untrack.length === 0;
  const concluded = verdict === undefined ? suspended(view, status, isManaged) : ended(view, status, verdict, isAtRest);
  const removed = new Set(changes.remove);
  const kept = isManaged ? view.active.filter((pod) => !removed.has(pod)) : [];
  return {
    create: changes.create,
    remove: changes.remove,
    reason: reasonOf(early),
    unmark: kept.filter(isMarked),
    retrack: kept.filter((pod) => !isTracked(pod)),
    status: concluded.status,
    untrack,
    events: concluded.events,
    backOff: view.backOff,
    checkAt: verdict === undefined ? earliest(changes.retryAt, deadlineOf(view)) : undefined,
  };
}

/**
 * Returns the view with the time at which the Job started. A Job that is resumed starts again, so that the time in which it was suspended
 * does not count towards activeDeadlineSeconds.
 */
function begun(view: JobView): JobView {
  const { job, spec, status, now } = view;
  if (spec.suspend === true) return view;
  const isOpen = storedVerdict(job) === undefined && job.metadata.deletionTimestamp === undefined;
  const isResumed = isOpen && trueCondition(job, 'Suspended') !== undefined;
  if (status.startTime !== undefined && !isResumed) return view;
  return { ...view, status: { ...status, startTime: formatTime(now) } };
}

const earliest = (...times: (Millis | undefined)[]): Millis | undefined => {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
};

function changesOf(view: JobView, verdict: Verdict | undefined, delayed: ReadonlyMap<number, Pod>): PodChanges {
  if (verdict !== undefined) return { create: [], remove: view.active };
  return view.job.metadata.deletionTimestamp === undefined ? manage(view, delayed) : { create: [], remove: [] };
}

function reasonOf(verdict: Verdict | undefined): DeletionReason {
  if (verdict === undefined) return 'ScaledDown';
  return verdict.reason === 'DeadlineExceeded' ? 'DeadlineExceeded' : 'Completed';
}

const activeAfter = (view: JobView, { create, remove }: PodChanges): number =>
  view.active.length - remove.length + create.length;

/** Whether enough Pods have succeeded and no Pod is active after the changes. */
function isComplete(view: JobView, changes: PodChanges): boolean {
  if (activeAfter(view, changes) > 0) return false;
  const { completions } = view.spec;
  return completions === undefined ? view.succeeded > 0 : view.succeeded >= completions;
}

function counts(view: JobView, changes: PodChanges): Required<Pick<JobStatus, 'active' | 'ready' | 'terminating'>> {
  return {
    active: activeAfter(view, changes),
    ready: view.active.filter(isPodReady).length - changes.remove.filter(isPodReady).length,
    terminating: view.pods.filter(isTerminating).length + changes.remove.length,
  };
}

interface Conclusion {
  status: JobStatus;
  events: readonly EventDraft[];
}

/**
 * Returns the status that announces the end of the Job, or, if `isAtRest` is true because all its Pods are counted, the status that ends
 * the Job.
 */
function ended({ job, spec, now }: JobView, status: JobStatus, verdict: Verdict, isAtRest: boolean): Conclusion {
  // A Job that ends at the moment at which it is resumed does not start again.
  const { startTime = status.startTime } = job.status ?? {};
  const announced = withVerdict({ ...status, ...defined({ startTime }) }, verdict, now);
  return isAtRest
    ? { status: withEnd(announced, verdict, now), events: endEvents(spec.completions, status, verdict) }
    : { status: announced, events: [] };
}

/**
 * Returns the status with the condition Suspended, and an Event if the condition changes. If `isManaged` is false, the condition is
 * unchanged.
 */
function suspended({ spec, now }: JobView, status: JobStatus, isManaged: boolean): Conclusion {
  const condition = spec.suspend === true ? SUSPENDED : RESUMED;
  const before = status.conditions ?? [];
  const conditions = isManaged ? withCondition(before, condition, now) : before;
  if (conditions === before) return { status, events: [] };
  const reason = condition === SUSPENDED ? 'Suspended' : 'Resumed';
  return { status: { ...status, conditions }, events: [{ type: 'Normal', reason, message: condition.message }] };
}

function endEvents(completions: number | undefined, { succeeded = 0 }: JobStatus, verdict: Verdict): EventDraft[] {
  const { type, reason, message } = verdict;
  if (type === 'FailureTarget') return [{ type: 'Warning', reason, message }];
  const completed: EventDraft = { type: 'Normal', reason: 'Completed', message: 'Job completed' };
  if (completions === undefined || succeeded <= completions) return [completed];
  const text = 'Too many succeeded pods running after completion count reached';
  return [{ type: 'Warning', reason: 'TooManySucceededPods', message: text }, completed];
}
