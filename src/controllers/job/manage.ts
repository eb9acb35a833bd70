/**
 * Decides which Pods a Job that has not ended creates and deletes. The functions are pure. One decision either creates or deletes;
 * deletions come first.
 *
 * A Pod that is being deleted and runs its defer containers is not counted yet, but probably fails. Therefore backoffLimit and the back-off
 * already take this Pod into account.
 * Source: manageJob of pkg/controller/job/job_controller.go of v1.33 (behavior).
 */
import type { Pod } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { hasDeferContainers } from '../ownership/owner-deleted.ts';
import { podsToDelete } from '../replicas/deletion-order.ts';
import { afterPods, indexRetryAt, retryAt } from './back-off.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import { firstMissing, union, withIndexes } from './intervals.ts';
import {
  indexFailures,
  indexOf,
  isEndingByItself,
  isIndexed,
  isTerminating,
  isTracked,
  isValid,
  type NewPod,
  replacesEndedOnly,
} from './job-pods.ts';
import { indexesOf, type JobView } from './view.ts';

/** The maximum number of Pods that one decision creates, or deletes as surplus. Source: MaxPodCreateDeletePerSync of pkg/controller/job. */
export const BURST = 500;

export interface PodChanges {
  create: readonly NewPod[];
  remove: readonly Pod[];
  /** When the first of the Pods that must wait for their back-off may be created; undefined if none must wait. */
  retryAt?: Millis;
}

const NOTHING: PodChanges = { create: [], remove: [] };

/** Returns the Pods to create and to delete. `delayed`: see delayedPods(). */
export function manage(view: JobView, delayed: ReadonlyMap<number, Pod>): PodChanges {
  const { spec, active } = view;
  if (spec.suspend === true) return { create: [], remove: [...active] };
  const wanted = wantedActive(view);
  const remove = surplus(view, Math.max(0, active.length - wanted)).slice(0, BURST);
  if (remove.length > 0) return { create: [], remove };
  const isAwaited = replacesEndedOnly(spec) ? isTerminating : (pod: Pod) => isTerminating(pod) && isAwaitedAlways(pod);
  const terminating = view.pods.filter(isAwaited);
  const missing = Math.min(wanted - active.length - terminating.length, BURST);
  return missing > 0 && view.mayCreate ? additions(view, missing, terminating, delayed) : NOTHING;
}

/**
 * Whether a terminating Pod must end before it is replaced even if the Job replaces terminating Pods: the work of a Pod that ended by
 * itself before it was deleted is done, so a replacement would do the work again.
 */
const isAwaitedAlways = (pod: Pod): boolean => isTracked(pod) && isEndingByItself(pod);

/** Returns how many Pods should be active. */
export function wantedActive({ spec, active, succeeded }: JobView): number {
  const parallelism = spec.parallelism ?? 1;
  // Without a number of completions, the Pods decide together when the work is done: after the first success, none is added.
  if (spec.completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(parallelism, spec.completions - succeeded));
}

/**
 * Returns the active Pods to delete: the Pods whose index is missing, too large or that of another Pod, and others until there are `count`.
 */
function surplus({ spec, active, now }: JobView, count: number): Pod[] {
  const remove: Pod[] = [];
  let rest = active;
  if (isIndexed(spec)) {
    remove.push(...active.filter((pod) => !isValid(spec, pod)));
    const kept: Pod[] = [];
    for (const pods of Map.groupBy(
      active.filter((pod) => isValid(spec, pod)),
      indexOf,
    ).values()) {
      const extra = podsToDelete(pods, [], pods.length - 1, now);
      remove.push(...extra);
      kept.push(...pods.filter((pod) => !extra.includes(pod)));
    }
    rest = kept;
  }
  const more = count - remove.length;
  return more > 0 ? [...remove, ...podsToDelete(rest, [], more, now)] : remove;
}

/**
 * Returns the Pods to create: none if the failures exceed backoffLimit, and none whose back-off is not over. `missing`: how many Pods are
 * missing. `terminating`: the Pods that are not replaced before they have ended.
 */
function additions(
  view: JobView,
  missing: number,
  terminating: readonly Pod[],
  delayed: ReadonlyMap<number, Pod>,
): PodChanges {
  const { spec, now } = view;
  const isPerIndex = view.failedIndexes !== undefined;
  const ending = view.pods.filter((pod) => isTracked(pod) && isTerminating(pod) && hasDeferContainers(pod));
  if (view.failed + ending.length > (spec.backoffLimit ?? 0)) return NOTHING;
  const wait = isPerIndex ? 0 : retryAt(afterPods(view.backOff, [], ending));
  if (wait > now) return { ...NOTHING, retryAt: wait };
  if (!isIndexed(spec)) return { create: Array.from({ length: missing }, () => ({})), remove: [] };
  // The number of failures of a replacement is known only once the Pods before it have ended.
  const waiting = isPerIndex ? [...terminating, ...ending] : terminating;
  const indexes = pendingIndexes(view, missing, waiting);
  return isPerIndex
    ? replacements(view, indexes, delayed)
    : { create: indexes.map((index) => ({ index })), remove: [] };
}

function pendingIndexes(view: JobView, count: number, waiting: readonly Pod[]): number[] {
  const { spec, active, completedIndexes = [], failedIndexes = [] } = view;
  const taken = withIndexes(union(completedIndexes, failedIndexes), indexesOf([...active, ...waiting]));
  return firstMissing(taken, count, spec.completions ?? 0);
}

/** Returns new Pods for the indexes whose back-off is over, and when the first of the other back-offs is over. */
function replacements(view: JobView, indexes: readonly number[], delayed: ReadonlyMap<number, Pod>): PodChanges {
  const times = indexes.map((index) => {
    const replaced = delayed.get(index);
    return { index, replaced, at: replaced === undefined ? 0 : indexRetryAt(replaced) };
  });
  const later = times.filter(({ at }) => at > view.now).map(({ at }) => at);
  const due = times.filter(({ at }) => at <= view.now);
  return {
    create: due.map(({ index, replaced }) => ({ index, failures: failuresAfter(view, replaced) })),
    remove: [],
    ...(later.length > 0 ? { retryAt: Math.min(...later) } : {}),
  };
}

/** Returns the failures of the index before the replacement: those of the replaced Pod's annotations, and the replaced Pod. */
function failuresAfter({ spec }: JobView, replaced: Pod | undefined): NonNullable<NewPod['failures']> {
  if (replaced === undefined) return { counted: 0, ignored: 0 };
  const { counted, ignored } = indexFailures(replaced);
  return matchFailurePolicy(spec, replaced).isCounted
    ? { counted: counted + 1, ignored }
    : { counted, ignored: ignored + 1 };
}
