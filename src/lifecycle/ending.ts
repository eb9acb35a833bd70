/**
 * The order in which the parts of an ending Pod stop, and what is left of it is removed.
 *
 * Source: Pod Lifecycle, "Termination of Pods" (v1.33): every preStop hook begins at once, and every app and init container gets its
 * stop signal after its own; sidecars stop after the apps, last started first; then the sandbox; what still runs at the deadline is killed; the object goes
 * when nothing is left. The specification of defer containers puts their list between.
 */
import type { Millis } from '../machinery/time.ts';
import { attemptOf, type DeferList, type Entry, killTime, recordedEntry, timeoutAt, wasInterrupted } from './defer.ts';
import { endRun, MINIMUM_GRACE_SECONDS, runPreStopHook } from './hooks.ts';
import { replaceSandbox } from './lost-sandbox.ts';
import type { Plan } from './plan.ts';
import { advance, collectOldRuns, ensureImage, start } from './progress.ts';
import { DEFER_BACKOFF_INITIAL_SECONDS, restartAfter, retryAt } from './restart.ts';
import type { Turn } from './turn.ts';
import type { ContainerState, Termination } from './types.ts';
import { announcedAttempt, type ContainerView, isRunning, isStarting, type PodView, toldRuns } from './view.ts';

/** Asks for the next steps of stopping everything; true once no container and no sandbox runs. */
export function stopEverything(turn: Turn, deadline: Millis): boolean {
  const { view, plan, now } = turn;
  cancelPreparations(view, plan);
  // A run that was being ended before keeps its own deadline, if that is earlier.
  const deadlineOf = ({ id }: ContainerState): Millis => Math.min(deadline, turn.stops[id]?.deadline ?? deadline);
  const stop = (run: ContainerState): void => endRun(turn, run, containerOf(view, run), deadlineOf(run));

  const live = view.observed.containers.filter(isRunning);
  const first = live.filter((run) => containerOf(view, run)?.sidecar !== true);
  for (const run of first) stop(run);
  for (const run of live) if (!first.includes(run)) preStop(turn, run, deadlineOf(run));
  if (isStarting(view) || first.length > 0) {
    plan.wake(deadline);
    // At the deadline the sidecars do not wait for the apps any more.
    if (now >= deadline) for (const run of live) stop(run);
    return false;
  }
  const last = lastSidecar(view);
  if (last !== undefined) {
    plan.wake(deadline);
    for (const run of now >= deadline ? live : [last]) stop(run);
    return false;
  }
  return stopSandboxes(view, plan);
}

const containerOf = (view: PodView, run: ContainerState): ContainerView | undefined =>
  view.all.find(({ spec }) => spec.name === run.name);

/** The sidecar that is to stop next: the last one that runs. */
const lastSidecar = (view: PodView): ContainerState | undefined =>
  view.init.map(({ latest }) => latest).findLast(isRunning);

/** Once no container runs any more. Of a deleted Pod the volumes are unmounted meanwhile. True once all are stopped. */
function stopSandboxes({ observed, pod }: PodView, plan: Plan): boolean {
  const unstopped = observed.sandboxes.filter((sandbox) => !sandbox.stopped);
  for (const sandbox of unstopped) plan.act({ kind: 'stopSandbox', id: sandbox.id });
  if (unstopped.length > 0 && pod.metadata.deletionTimestamp !== undefined && observed.volumes === 'mounted')
    plan.act({ kind: 'unmountVolumes' });
  return unstopped.length === 0;
}

/** As stopEverything(), of a Pod whose defer containers run between. */
export function stopWithDefers(turn: Turn, termination: Termination, list: DeferList): boolean {
  const { view, plan, now } = turn;
  const { deadline } = termination;
  const killAt = killTime(termination);
  plan.wake(deadline);
  plan.wake(killAt);
  cancelPreparations(view, plan, list.over ? undefined : list.turn);
  const stop = (run: ContainerState): void => {
    cancelEarlierKill(run, killAt, view, plan);
    if (run.kind === 'defer') turn.stops[run.id] ??= { at: now, deadline, restart: false };
    endRun(turn, run, containerOf(view, run), deadline, killAt);
  };
  const live = view.observed.containers.filter(isRunning);
  // How an entry ended is written down before what shows it goes.
  const told = list.entries.every(({ container }) => recordedEntry(view, container)?.state?.terminated !== undefined);
  if (list.over) {
    for (const run of live) stop(run);
    return live.length === 0 && !isStarting(view) && told && stopSandboxes(view, plan);
  }
  // What is not written down did not happen to the next agent.
  if (list.held || view.pod.status?.termination === undefined) return false;

  const { turn: entry } = list;
  if (entry !== undefined && view.sandbox?.ready !== true) {
    replaceSandbox(turn, termination);
    return false;
  }
  const running = (...kinds: ContainerState['kind'][]): ContainerState[] =>
    live.filter((run) => kinds.includes(run.kind) && containerOf(view, run)?.sidecar !== true);
  const apps = running('app', 'init');
  if (entry !== undefined && entry.spec.trigger !== 'PostExit') {
    for (const { current } of view.apps) if (current !== undefined) preStop(turn, current, deadline);
    // Init containers are no business of an entry.
    for (const run of running('init')) stop(run);
    advanceEntry(turn, entry, termination);
  } else if (list.entries.every(isSettled)) {
    for (const run of apps) stop(run);
    if (apps.length === 0 && !isAppStarting(view) && entry !== undefined) advanceEntry(turn, entry, termination);
  }
  // A sidecar that is restarted meanwhile has its hook when it is to stop.
  for (const run of live)
    if (containerOf(view, run)?.sidecar && run.createdAt < termination.startedAt) preStop(turn, run, deadline);
  if (entry !== undefined) {
    // Also for the image of one: a termination is too short for the back-off of pulls.
    if (view.observed.volumes !== 'mounted') plan.act({ kind: 'mountVolumes' }, retryAt);
    for (const sidecar of view.init) if (sidecar.sidecar && sidecar.latest !== undefined) advance(turn, sidecar);
    return false;
  }
  if (apps.length > 0 || isStarting(view)) return false;
  const last = lastSidecar(view);
  const next = last === undefined ? running('ephemeral') : [last];
  for (const run of next) stop(run);
  return next.length === 0 && told && stopSandboxes(view, plan);
}

/** Of an entry that failed the status tells, before the Pod goes a step that does not go back: another agent would run it again. */
const isSettled = ({ end }: Entry): boolean =>
  end === undefined || end.recorded !== undefined || end.reason === 'Completed' || end.reason === 'Skipped';

const isAppStarting = ({ observed, apps, init }: PodView): boolean =>
  [...apps, ...init].some(
    ({ spec, sidecar }) =>
      !sidecar && [...observed.inFlight].some((key) => key.startsWith(`startContainer/${spec.name}/`)),
  );

function preStop(turn: Turn, run: ContainerState, deadline: Millis): void {
  const container = containerOf(turn.view, run);
  if (container !== undefined) runPreStopHook(turn, run, container, deadline);
}

/** A deadline that was moved later: whoever is to kill at the earlier one lets go. */
function cancelEarlierKill(run: ContainerState, killAt: Millis, view: PodView, plan: Plan): void {
  const prefix = `stopContainer/${run.id}/`;
  for (const key of view.observed.inFlight)
    if (key.startsWith(prefix) && Number(key.slice(prefix.length)) < killAt) plan.act({ kind: 'cancel', key });
}

/** Takes the entry whose turn it is a step further: image, intent, start, timeout, the next attempt. */
function advanceEntry(turn: Turn, entry: Entry, termination: Termination): void {
  const { view, plan, now, stops } = turn;
  const { container, begunAt } = entry;
  const { current } = container;
  const limit = timeoutAt(entry);
  if (limit !== undefined) plan.wake(limit);
  collectOldRuns(container, plan);
  if (current?.state === 'unknown') {
    plan.act({ kind: 'stopContainer', id: current.id, deadline: current.createdAt });
    return;
  }
  if (current?.state === 'running') {
    if (limit !== undefined && now >= limit)
      stops[current.id] ??= {
        message: `Container ${container.spec.name} exceeded its timeoutSeconds`,
        at: now,
        deadline: now + MINIMUM_GRACE_SECONDS * 1000,
        restart: false,
      };
    const stop = stops[current.id];
    const killAt = killTime(termination);
    if (stop !== undefined)
      endRun(turn, current, container, Math.min(stop.deadline, termination.deadline), Math.min(stop.deadline, killAt));
    return;
  }
  const retry = current?.state === 'exited' ? retryOf(turn, container, current) : FIRST;
  if (retry.at > now) {
    plan.wake(retry.at);
    return;
  }
  const attempt = attemptOf(container);
  // A pull that failed ahead of the turn is no reason to wait.
  const image = ensureImage(view, container, attempt, plan, (failure) =>
    failure.at < begunAt ? now : retryAt(failure),
  );
  if (image !== undefined && isAnnounced(view, container, attempt))
    start(turn, container, attempt, retry.nextBackoffSeconds);
}

const FIRST = { at: 0, nextBackoffSeconds: DEFER_BACKOFF_INITIAL_SECONDS };

/** When the next attempt may start after this one, and what the one after it has to wait. */
export const retryOf = (turn: Turn, container: ContainerView, run: ContainerState): typeof FIRST =>
  wasInterrupted(turn, container, run) ? FIRST : restartAfter(run, turn.stops);

/** The Pod's status tells that this attempt is about to start. */
function isAnnounced(view: PodView, container: ContainerView, attempt: number): boolean {
  const recorded = recordedEntry(view, container);
  return recorded !== undefined && announcedAttempt(view.pod, recorded) === attempt;
}

/** Nobody waits for a pull, a look-up or a mount that is not wanted any more. `kept`: the defer container that still is. */
function cancelPreparations(view: PodView, plan: Plan, kept?: Entry): void {
  for (const key of view.observed.inFlight) {
    const [kind = '', name] = key.split('/');
    const wanted = kept !== undefined && (kind === 'mountVolumes' || isDefer(view, name));
    if (['pullImage', 'checkImage', 'mountVolumes'].includes(kind) && !wanted) plan.act({ kind: 'cancel', key });
  }
}

const isDefer = (view: PodView, name: string | undefined): boolean =>
  view.defers.some(({ spec }) => spec.name === name);

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

/**
 * Of a Pod that was evicted, what its containers have written takes the room that was wanted: they go once the status tells of
 * their ends. Source: pkg/kubelet/pod_container_deletor.go of v1.33 (behaviour).
 */
export function removeRecorded(view: PodView, plan: Plan): void {
  for (const runs of toldRuns(view.pod, view.observed.containers))
    for (const run of runs.length > 1 ? runs.slice(0, -1) : runs)
      plan.act({ kind: 'removeContainer', id: run.id, container: run.name, attempt: run.attempt });
}
