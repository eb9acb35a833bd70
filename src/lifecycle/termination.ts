/**
 * Why a Pod ends, and until when it may take.
 *
 * Sources: Pod Lifecycle, "Termination of Pods" (v1.33); for Pods with defer containers their specification: the termination
 * is written to the Pod's status before anything ends, and from then on the status is what holds, for whichever agent.
 */
import type { Pod } from '../api/generated/types.ts';
import type { ObjectMeta } from '../machinery/meta.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import { MINIMUM_GRACE_SECONDS } from './hooks.ts';
import { graceMillis } from './turn.ts';
import type { Input, NodeEnd, Termination, TerminationReason } from './types.ts';
import type { PodView } from './view.ts';

/** The deadline of spec.activeDeadlineSeconds, counted from the start of the Pod. */
export function activeDeadline(view: PodView, startedAt: Millis): Millis | undefined {
  const seconds = view.spec.activeDeadlineSeconds;
  return seconds === undefined ? undefined : startedAt + seconds * 1000;
}

/** The termination in force: the first reason begins it; a later one may move its deadline earlier, never later. */
export function terminationInForce(input: Input, view: PodView, startedAt: Millis): Termination | undefined {
  const { now, memory, pod, removed, nodeEnd } = input;
  const { phase, reason } = pod.status ?? {};
  let termination = withRecord(memory.termination, pod, view, now);

  const limit = activeDeadline(view, startedAt);
  const tooLong = limit !== undefined && limit <= now && !isTerminal(phase);
  if (termination === undefined && (tooLong || (phase === 'Failed' && reason === 'DeadlineExceeded')))
    termination = {
      reason: 'DeadlineExceeded',
      startedAt: now,
      // From the time that was passed, so that a new agent reckons the same; or it is written down.
      deadline: hasDefers(view)
        ? now + graceMillis(view)
        : Math.max((limit ?? now) + graceMillis(view), now + MINIMUM_GRACE_SECONDS * 1000),
    };
  if (termination === undefined && isTerminal(phase)) termination = completion(view, now);
  if (nodeEnd !== undefined) {
    const deadline = nodeEnd.at + Math.min(graceMillis(view), nodeEnd.graceSeconds * 1000);
    if (termination === undefined) termination = { reason: nodeEnd.reason, startedAt: now, deadline };
    else termination = { ...termination, deadline: Math.min(termination.deadline, deadline) };
    if (nodeEnd.graceSeconds === 0) termination.hard = true;
  }

  const { deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined && deletionTimestamp !== termination?.deletionTimestamp)
    termination = deletion(termination, pod, view, now, deletionTimestamp);
  if (removed && termination?.deletionTimestamp !== FORCED)
    termination = withDeadline(termination, now + MINIMUM_GRACE_SECONDS * 1000, now, FORCED);
  return termination;
}

/** What the node puts to a Pod that it may be ending already: the first reason stays, as above, and only the time shrinks. */
export function nodeEndAfter(before: NodeEnd | undefined, by: Omit<NodeEnd, 'at'>, now: Millis): NodeEnd {
  const { graceSeconds, reason } = by;
  if (before !== undefined && graceSeconds >= before.graceSeconds) return before;
  return { ...(before ?? by), at: now, graceSeconds, ...(reason === 'NodePressure' ? { evicted: true } : {}) };
}

const hasDefers = (view: PodView): boolean => view.defers.length > 0;

/**
 * Of a Pod with defer containers the status tells, but for what has only just been decided. What an agent reads that finds the
 * clock set back leaves no more time than the whole of it.
 */
function withRecord(memory: Termination | undefined, pod: Pod, view: PodView, now: Millis): Termination | undefined {
  const recorded = hasDefers(view) ? recordedTermination(pod) : undefined;
  if (recorded === undefined) return memory;
  const extended = (recorded.extendedSeconds ?? 0) > (memory?.extendedSeconds ?? 0);
  const deadline =
    memory === undefined
      ? Math.min(recorded.deadline, now + recorded.deadline - recorded.startedAt)
      : extended
        ? recorded.deadline
        : Math.min(memory.deadline, recorded.deadline);
  return { ...memory, ...recorded, deadline };
}

/** As status.termination tells it. */
export function recordedTermination({ status }: Pod): Termination | undefined {
  const recorded = status?.termination;
  const startedAt = parseTime(recorded?.startedAt);
  const deadline = parseTime(recorded?.deadline);
  if (recorded === undefined || startedAt === undefined || deadline === undefined) return undefined;
  const { reason, extendedSeconds } = recorded;
  return {
    reason: reason as TerminationReason,
    startedAt,
    deadline,
    ...(extendedSeconds === undefined ? {} : { extendedSeconds }),
  };
}

/**
 * A Pod that is over by itself: the defer containers, sidecars and the sandbox are left. The grace period counts from
 * the last exit; where no agent saw that, from when one sees it.
 */
export function completion(view: PodView, now: Millis): Termination {
  const ends = hasDefers(view) ? view.apps.map(({ latest }) => latest?.finishedAt ?? 0) : [];
  const lastExit = Math.round(Math.max(0, ...ends));
  const startedAt = now - lastExit < JUST_NOW_MILLIS ? lastExit : now;
  return { reason: 'Completed', startedAt, deadline: startedAt + graceMillis(view) };
}

const FORCED = 'removed';

/** What is seen within this time was seen at once; times in the API are whole seconds. */
const JUST_NOW_MILLIS = 2000;

function deletion(
  termination: Termination | undefined,
  pod: Pod,
  view: PodView,
  now: Millis,
  deletionTimestamp: string,
): Termination {
  const deadline = deletionDeadline(pod.metadata, view, now);
  if (!hasDefers(view) || termination === undefined)
    return { ...withDeadline(termination, deadline, now, deletionTimestamp), reason: reasonOf(termination, pod) };
  // An agent that begins anew knows of the delete only by whole seconds, not when it was seen.
  const unknownMillis = termination.deletionTimestamp === undefined ? JUST_NOW_MILLIS : 1000;
  const shorter = termination.deadline - deadline >= unknownMillis;
  if (!shorter) return { ...termination, deletionTimestamp };
  return { ...termination, deletionTimestamp, deadline: Math.min(termination.deadline, Math.max(deadline, now)) };
}

/** Who asked for a deletion says so in the condition DisruptionTarget. Source: Disruptions, "Pod disruption conditions" (v1.33). */
function reasonOf(termination: Termination | undefined, { status }: Pod): TerminationReason {
  if (termination !== undefined) return termination.reason;
  const disruption = status?.conditions?.find(
    ({ type, status: holds }) => type === 'DisruptionTarget' && holds === 'True',
  );
  switch (disruption?.reason) {
    case 'EvictionByEvictionAPI':
    case 'DeletionByTaintManager':
      return 'Evicted';
    case 'PreemptionByScheduler':
      return 'Preempted';
    default:
      return 'Deleted';
  }
}

const withDeadline = (
  termination: Termination | undefined,
  deadline: Millis,
  now: Millis,
  deletionTimestamp: string,
): Termination => ({
  ...termination,
  reason: termination?.reason ?? 'Deleted',
  startedAt: termination?.startedAt ?? now,
  deadline: Math.min(termination?.deadline ?? deadline, deadline),
  deletionTimestamp,
});

/**
 * The grace period counts from when the delete is seen. After a restart of the agent it counts from the
 * request, which the deletionTimestamp (whole seconds) tells.
 */
function deletionDeadline(metadata: ObjectMeta, view: PodView, now: Millis): Millis {
  const given = metadata.deletionGracePeriodSeconds;
  const grace = given === undefined ? graceMillis(view) : given * 1000;
  const millis = hasDefers(view) ? grace : Math.max(MINIMUM_GRACE_SECONDS * 1000, grace);
  const requestedAt = (parseTime(metadata.deletionTimestamp) ?? now) - (given ?? 0) * 1000;
  const justNow = now - requestedAt < JUST_NOW_MILLIS;
  return (justNow ? now : requestedAt) + millis;
}

const isTerminal = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';
