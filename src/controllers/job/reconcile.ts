/**
 * Decides which Pods of a Job to create, delete and count, and computes the status. The functions are pure.
 *
 * The status is written after the Pods are created and deleted, and before the finalizers of `untrack` are removed. The next decision
 * counts the Pods of `untrack`. It ends the Job if no Pod is active, terminating or uncounted.
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
  /**
   * Why the Pods are deleted. With ScaledDown, the Pods lose their finalizers first and are not counted, except Pods that end by
   * themselves.
   */
  reason: DeletionReason;
  /** Pods that are no longer to be deleted, but were marked with a deletion reason before a crash or a failed delete. */
  unmark: readonly Pod[];
  /** Active Pods that get the finalizer again: a previous engine removed it, but did not delete the Pod. */
  retrack: readonly Pod[];
  /** The status if all creates succeed. */
  status: JobStatus;
  /** Pods whose finalizers are removed after the status is written. */
  untrack: readonly Pod[];
  events: readonly EventDraft[];
  backOff: BackOff;
  /**
   * When the back-off or activeDeadlineSeconds ends, whichever is first, so that the Job must be reconciled again; undefined if neither is
   * awaited.
   */
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
  const { status: tracked, untrack } = track(view, verdict, reasonOf(early), new Set(delayed.values()));
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
 * Sets the time at which the Job started. A resumed Job starts again, so that the suspension does not count toward activeDeadlineSeconds.
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

/** Announces the end of the Job. If `isAtRest`, all Pods are counted, and the Job also ends. */
function ended({ job, spec, now }: JobView, status: JobStatus, verdict: Verdict, isAtRest: boolean): Conclusion {
  // A Job that ends at the moment at which it is resumed does not start again.
  const { startTime = status.startTime } = job.status ?? {};
  const announced = withVerdict({ ...status, ...defined({ startTime }) }, verdict, now);
  return isAtRest
    ? { status: withEnd(announced, verdict, now), events: endEvents(spec.completions, status, verdict) }
    : { status: announced, events: [] };
}

/** Sets the condition Suspended unless `isManaged` is false, with an Event if the condition changes. */
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
