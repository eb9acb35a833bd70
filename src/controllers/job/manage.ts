/**
 * Decides which Pods a Job that has not ended creates or deletes. The functions are pure. A decision that deletes Pods creates none.
 *
 * A deleted Pod that still runs its defer containers is not counted yet, but probably fails. Therefore it already counts toward
 * backoffLimit and the back-off.
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
  /** When the first Pod that waits for its back-off may be created; undefined if none waits. */
  retryAt?: Millis;
}

const NOTHING: PodChanges = { create: [], remove: [] };

/** `delayed`: the result of delayedPods(). */
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
 * Whether the Pod must end before it is replaced, whatever the podReplacementPolicy is. The work of a Pod that ended by itself is done, and
 * a replacement would repeat it.
 */
const isAwaitedAlways = (pod: Pod): boolean => isTracked(pod) && isEndingByItself(pod);

export function wantedActive({ spec, active, succeeded }: JobView): number {
  const parallelism = spec.parallelism ?? 1;
  // Without `completions`, the first success means that the work is done: no Pods are added.
  if (spec.completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(parallelism, spec.completions - succeeded));
}

/** Returns the active Pods to delete: those with a missing, too large or duplicate index, and others until there are `count`. */
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

/** `missing`: how many Pods to create at most. `terminating`: the Pods that must end before they are replaced. */
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
  // The failure count of a replacement is known only after the previous Pods of the index have ended.
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

/** Returns new Pods for the indexes whose back-off is over, and when the next back-off is over. */
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

function failuresAfter({ spec }: JobView, replaced: Pod | undefined): NonNullable<NewPod['failures']> {
  if (replaced === undefined) return { counted: 0, ignored: 0 };
  const { counted, ignored } = indexFailures(replaced);
  return matchFailurePolicy(spec, replaced).isCounted
    ? { counted: counted + 1, ignored }
    : { counted, ignored: ignored + 1 };
}
