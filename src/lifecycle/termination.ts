/**
 * The end of a Pod: why it ends, until when it may take, and the order in which its parts stop.
 *
 * Source: Pod Lifecycle, "Termination of Pods" (v1.33): every app and init container gets its stop signal at once; sidecars stop
 * after the apps, last started first; then the sandbox; what still runs at the deadline is killed; the object goes
 * when nothing is left.
 */
import type { ObjectMeta } from '../machinery/meta.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import { endRun, MINIMUM_GRACE_SECONDS } from './hooks.ts';
import type { Plan } from './plan.ts';
import { graceMillis, type Turn } from './turn.ts';
import type { ContainerState, Input, Termination } from './types.ts';
import { type ContainerView, isRunning, isStarting, type PodView } from './view.ts';

/** The deadline of spec.activeDeadlineSeconds, counted from the start of the Pod. */
export function activeDeadline(view: PodView, startedAt: Millis): Millis | undefined {
  const seconds = view.spec.activeDeadlineSeconds;
  return seconds === undefined ? undefined : startedAt + seconds * 1000;
}

/** The termination in force: the first reason begins it; a later one may move its deadline earlier, never later. */
export function terminationInForce(input: Input, view: PodView, startedAt: Millis): Termination | undefined {
  const { now, memory, pod, removed } = input;
  const { phase, reason } = pod.status ?? {};
  let termination = memory.termination;

  const limit = activeDeadline(view, startedAt);
  const tooLong = limit !== undefined && limit <= now && !isTerminal(phase);
  if (termination === undefined && (tooLong || (phase === 'Failed' && reason === 'DeadlineExceeded')))
    termination = {
      reason: 'DeadlineExceeded',
      startedAt: now,
      // From the time that was passed, so that a new agent reckons the same.
      deadline: Math.max((limit ?? now) + graceMillis(view), now + MINIMUM_GRACE_SECONDS * 1000),
    };
  if (termination === undefined && isTerminal(phase)) termination = completion(view, now);

  const { deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined && deletionTimestamp !== termination?.deletionTimestamp)
    termination = withDeadline(termination, deletionDeadline(pod.metadata, view, now), now, deletionTimestamp);
  if (removed && termination?.deletionTimestamp !== FORCED)
    termination = withDeadline(termination, now + MINIMUM_GRACE_SECONDS * 1000, now, FORCED);
  return termination;
}

/** A Pod that is over by itself: only sidecars and the sandbox are left to stop. */
export const completion = (view: PodView, now: Millis): Termination => ({
  reason: 'Completed',
  startedAt: now,
  deadline: now + graceMillis(view),
});

const FORCED = 'removed';

const withDeadline = (
  termination: Termination | undefined,
  deadline: Millis,
  now: Millis,
  deletionTimestamp: string,
): Termination => ({
  reason: 'Deleted',
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
  const millis = Math.max(MINIMUM_GRACE_SECONDS * 1000, given === undefined ? graceMillis(view) : given * 1000);
  const requestedAt = (parseTime(metadata.deletionTimestamp) ?? now) - (given ?? 0) * 1000;
  const justNow = now - requestedAt < 2000;
  return (justNow ? now : requestedAt) + millis;
}

const isTerminal = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

/** Asks for the next steps of stopping everything; true once no container and no sandbox runs. */
export function stopEverything(turn: Turn, deadline: Millis): boolean {
  const { view, plan, now } = turn;
  cancelPreparations(view, plan);
  const containerOf = (run: ContainerState): ContainerView | undefined =>
    view.all.find(({ spec }) => spec.name === run.name);
  // A run that was being ended before keeps its own deadline, if that is earlier.
  const stop = (run: ContainerState): void =>
    endRun(turn, run, containerOf(run), Math.min(deadline, turn.stops[run.id]?.deadline ?? deadline));

  const live = view.observed.containers.filter(isRunning);
  const first = live.filter((run) => containerOf(run)?.sidecar !== true);
  for (const run of first) stop(run);
  if (isStarting(view) || first.length > 0) {
    plan.wake(deadline);
    // At the deadline the sidecars do not wait for the apps any more.
    if (now >= deadline) for (const run of live) stop(run);
    return false;
  }
  const sidecars = view.init.filter(({ latest }) => live.some((run) => run.id === latest?.id));
  const last = sidecars.at(-1)?.latest;
  if (last !== undefined) {
    plan.wake(deadline);
    for (const run of now >= deadline ? live : [last]) stop(run);
    return false;
  }
  const unstopped = view.observed.sandboxes.filter((sandbox) => !sandbox.stopped);
  for (const sandbox of unstopped) plan.act({ kind: 'stopSandbox', id: sandbox.id });
  return unstopped.length === 0;
}

/** Nobody waits for a pull, a look-up or a mount that is not wanted any more. */
function cancelPreparations(view: PodView, plan: Plan): void {
  for (const key of view.observed.inFlight)
    if (key.startsWith('pullImage/') || key.startsWith('checkImage/') || key === 'mountVolumes')
      plan.act({ kind: 'cancel', key });
}

/** Removes what a stopped Pod leaves on the node; true once nothing is left. */
export function removeEverything(view: PodView, plan: Plan): boolean {
  const { sandboxes, containers, volumes } = view.observed;
  // Removing a sandbox removes its containers with it.
  for (const sandbox of sandboxes) plan.act({ kind: 'removeSandbox', id: sandbox.id });
  for (const run of containers)
    if (!sandboxes.some((sandbox) => sandbox.id === run.sandboxId))
      plan.act({ kind: 'removeContainer', id: run.id, container: run.name, attempt: run.attempt });
  if (volumes !== 'gone' && !plan.pending('mountVolumes')) plan.act({ kind: 'removeFiles' });
  return sandboxes.length === 0 && containers.length === 0 && volumes === 'gone';
}
