/**
 * Ends a Pod by an ordered list of waves, which walk() processes:
 *
 * PreExit entries   one after the other, until S (preExitDeadline)
 * app and init containers, all together; killed at S, but not within 2 s of their stop signal
 * PostExit entries  one after the other, until D (deadline)
 * sidecars          one after the other, the last started first, until D
 * ephemeral containers, all together
 * the sandbox
 *
 * A wave begins when the earlier waves are done; its preStop hooks may begin before. At D, all remaining containers are killed, but not
 * within 2 s of their stop signal. If the Pod has no defer containers or its object was removed, ephemeral and defer containers stop with
 * the app containers. walk() also stops the containers of a lost sandbox.
 *
 * Sources: Pod Lifecycle, "Termination of Pods" (v1.33); killPod of v1.33's kubelet (behavior), for a Pod whose sandbox has changed; the
 * specification of defer containers, "The order of a termination".
 */
import { GIVEN_UP } from '../api/core/v1/pod/status/deferred.ts';
import { recordedRuns } from '../api/core/v1/pod/status/statuses.ts';
import type { Millis } from '../machinery/time.ts';
import { advance, collectOldRuns, ensureImage, startRun } from './container-steps.ts';
import { attemptOf, type DeferList, type Entry, mainContainers, nextTry, outOfTime } from './defer.ts';
import { act, type Rule, retryAt, wake } from './effects.ts';
import { endRun, kill, MINIMUM_GRACE_MILLIS, postStartHooks, preStop } from './hooks-and-stops.ts';
import { hasPostExitBegun, isDue, isPostExit } from './termination-causes.ts';
import type { End } from './termination-stages.ts';
import { actionKey, type ContainerState, type Stop } from './types.ts';
import type { ContainerView, PodView } from './view.ts';
import { announcedAttempt, containerOf, diedAtStart, isLive, isMain, isRunning, isStarting, underWay } from './view.ts';

interface Wave {
  runs: readonly ContainerState[];
  end: Millis; // When its preStop hooks are abandoned and its runs are killed.
  open?: boolean; // true: later waves wait, even if no container of this wave runs.
  hooksBegin?: boolean; // true: its preStop hooks begin now, even if earlier waves are not done.
}

/** Stops the first wave that is not done; from `overdueAt` on, all waves. Returns true once all waves are done. */
function* walk(view: PodView, waves: readonly Wave[], overdueAt: Millis): Rule<boolean> {
  const isLeft = ({ runs, open }: Wave): boolean => open === true || runs.length > 0;
  const first = waves.findIndex(isLeft);
  for (const [index, { runs, end, hooksBegin }] of waves.entries())
    for (const run of runs) {
      // A run that is already being stopped keeps an earlier deadline.
      const own = Math.min(end, view.stops[run.id]?.deadline ?? end);
      const container = containerOf(view, run);
      if (index === first || view.now >= overdueAt) yield* endRun(view, run, own);
      else if (hooksBegin && container !== undefined) yield* preStop(view, run, container, own);
    }
  return first < 0;
}

const live = (containers: readonly ContainerView[]): ContainerState[] =>
  containers.flatMap(({ runs }) => runs.filter(isRunning));

const sidecarWaves = (view: PodView, end: Millis, hooksBegin: (run: ContainerState) => boolean): Wave[] =>
  view.init
    .filter(({ sidecar }) => sidecar)
    .reverse()
    .map((sidecar) => {
      const runs = live([sidecar]);
      return { runs, end, open: sidecar.starting, hooksBegin: runs.every(hooksBegin) };
    });

function wavesOf(view: PodView, { termination, list }: End): Wave[] {
  const { deadline, preExitDeadline, startedAt } = termination;
  // Containers that are no longer in the spec end with the app containers.
  const strays = view.observed.containers.filter((run) => isRunning(run) && containerOf(view, run) === undefined);
  const apps = [...live(mainContainers(view)), ...strays];
  const concurrent = list === undefined || view.spec.preStopPolicy !== 'AfterPreExit';
  // A sidecar that restarted during the termination runs its hook when it is to stop.
  const isEarly = (run: ContainerState): boolean => concurrent && (list === undefined || run.createdAt < startedAt);
  const sidecars = sidecarWaves(view, deadline, isEarly);
  const debuggers = live(view.ephemeral);
  const starting = mainContainers(view).some((each) => each.starting);
  if (list === undefined) {
    const runs = [...apps, ...debuggers, ...live(view.defers)];
    return [{ runs, end: deadline, open: starting, hooksBegin: true }, ...sidecars];
  }
  const stage = (postExit: boolean): Wave => {
    const entries = list.entries.filter(({ spec }) => isPostExit(spec) === postExit);
    // A canceled start may still take effect after the entry has ended.
    const ended = entries.filter(({ end }) => end !== undefined).map(({ container }) => container);
    // The status must have the end of a failed entry before later waves begin, or a new agent could run the entry again.
    const isOpen = ({ end }: Entry): boolean =>
      end === undefined || (end.recorded === undefined && end.reason !== 'Completed' && end.reason !== 'Skipped');
    const open = list.skipped === undefined && entries.some(isOpen);
    return { runs: live(ended), end: 0, open };
  };
  return [
    stage(false),
    { runs: apps, end: preExitDeadline, open: starting, hooksBegin: concurrent },
    stage(true),
    ...sidecars,
    { runs: debuggers, end: deadline },
  ];
}

/** Returns from when on all waves are stopped; infinite until a PostExit stage that is due has its reserve. */
function overdueAt(view: PodView, { termination, list }: End): Millis {
  if (list?.skipped !== undefined) return view.now;
  const isToCome = ({ end, spec }: Entry): boolean =>
    end === undefined && isPostExit(spec) && isDue(spec, termination.reason);
  const isAwaited = list?.entries.some(isToCome) && !hasPostExitBegun(view, termination);
  return isAwaited ? Number.POSITIVE_INFINITY : termination.deadline;
}

const isToRun = (list: DeferList | undefined): boolean => list?.open === true && list.skipped === undefined;

/** Returns true once no container and no sandbox runs. */
export function* endPod(view: PodView, end: End): Rule<boolean> {
  const { list, held, termination } = end;
  const { turn } = list ?? {};
  yield* cancelPreparations(view, list);
  yield wake(termination.deadline);
  yield wake(termination.preExitDeadline);
  yield wake(turn?.timeoutAt ?? termination.deadline);
  if (held) return false;
  // A new agent mounts the volumes again. The mount may pull images, whose usual back-off would be too long in a termination.
  if (isToRun(list) && view.observed.volumes !== 'mounted') yield act({ kind: 'mountVolumes' }, retryAt);
  const mayWait = list?.skipped === undefined && view.now < (turn?.stageEnd ?? termination.preExitDeadline);
  if (!(yield* downwardFiles(view, list)) && mayWait) return false;
  if (turn !== undefined && view.sandbox?.ready !== true && view.now < turn.stageEnd && isToRun(list)) {
    yield* replaceSandbox(view, end);
    return false;
  }
  if (turn !== undefined) yield* advanceEntry(view, turn, list?.skipped);
  const overdue = overdueAt(view, end);
  if (isToRun(list)) {
    yield* postStartHooks(view);
    for (const sidecar of view.now < overdue && view.sandbox?.ready ? view.init : [])
      if (sidecar.sidecar && sidecar.latest !== undefined) yield* advance(view, sidecar);
  }
  const isOver = yield* walk(view, wavesOf(view, end), overdue);
  // The end of an entry is known from its run, so the status must have the end before the run is removed.
  const isRecorded = list?.entries.every(
    ({ container, end: own }) =>
      own?.recorded !== undefined || (list.skipped !== undefined && container.latest === undefined),
  );
  if (!isOver || isStarting(view) || view.observed.containers.some(isRunning) || isRecorded === false) return false;
  const isStopped = yield* stopSandboxes(view);
  const unmounts = !isStopped && view.pod.metadata.deletionTimestamp !== undefined;
  if (unmounts && view.observed.volumes === 'mounted') yield act({ kind: 'unmountVolumes' });
  return isStopped;
}

/**
 * Writes the downward API files that show status.termination. PostExit entries see the exits of the app containers. Returns true once no
 * write is needed, or the write or mount has failed.
 */
function* downwardFiles({ spec, pod, observed, failureOf }: PodView, list: DeferList | undefined): Rule<boolean> {
  const items = (spec.volumes ?? []).flatMap(({ downwardAPI, projected }) => [
    ...(downwardAPI?.items ?? []),
    ...(projected?.sources ?? []).flatMap((source) => source.downwardAPI?.items ?? []),
  ]);
  const { startedAt = '', containers = [] } = pod.status?.termination ?? {};
  const version = list?.turn && isPostExit(list.turn.spec) ? `${startedAt}/${containers.length}` : startedAt;
  const isShown = items.some(({ fieldRef }) => fieldRef?.fieldPath.startsWith('status.termination.'));
  if (!isShown || startedAt === '' || observed.downward === version) return true;
  if (observed.volumes !== 'mounted') return !isToRun(list) || failureOf('mountVolumes') !== undefined;
  const write = { kind: 'writeDownwardFiles', version } as const;
  yield act(write);
  return failureOf(actionKey(write)) !== undefined;
}

/** A stopped sandbox no longer has its addresses and host ports. Returns true once all sandboxes are stopped. */
function* stopSandboxes({ observed }: PodView): Rule<boolean> {
  const unstopped = observed.sandboxes.filter((sandbox) => !sandbox.stopped);
  for (const { id } of unstopped) yield act({ kind: 'stopSandbox', id });
  return unstopped.length === 0;
}

/**
 * Ends the runs of a lost sandbox, then creates the next one, with a back-off after sandboxes that ended at their start. `end`: the
 * termination, if the Pod still has entries to run.
 */
export function* replaceSandbox(view: PodView, end?: End): Rule {
  const { now, observed, sandbox, restartPolicy } = view;
  const remains = observed.containers.filter(isRunning);
  const stops = remains.map((run): [ContainerState, Stop] => {
    const restart = end === undefined && restartPolicy !== 'Never';
    const stop = view.stops[run.id] ?? { at: now, deadline: now + view.graceMillis, restart };
    if (end === undefined) return [run, stop];
    // The containers of the lost sandbox must not use up the time of the defer containers.
    const most = isMain(containerOf(view, run)) ? end.termination.preExitDeadline : stop.at + MINIMUM_GRACE_MILLIS;
    return [run, { ...stop, deadline: Math.min(stop.deadline, most) }];
  });
  for (const [run, stop] of stops) yield run.state === 'unknown' ? kill(run) : { run: run.id, stop };
  const last = Math.max(now, ...stops.map(([, { deadline }]) => deadline));
  const until = end === undefined ? last : Math.min(last, end.termination.deadline);
  yield wake(until);
  const known = remains.filter(({ state }) => state !== 'unknown');
  const others = known.filter((run) => containerOf(view, run)?.sidecar !== true);
  const waves: Wave[] = [
    { runs: others, end: until, open: known.length < remains.length, hooksBegin: true },
    // The start of a sidecar in the lost sandbox may hang, so it is not awaited.
    ...sidecarWaves(view, until, () => true).map((wave) => ({ ...wave, open: false })),
  ];
  const ending = { ...view, stops: Object.fromEntries(stops.map(([{ id }, stop]) => [id, stop])) };
  if (!(yield* walk(ending, waves, until))) return;
  if (!(yield* stopSandboxes(view))) return;
  const dead = diedAtStart(view);
  const next = dead[0] === undefined ? now : retryAt({ at: dead[0].createdAt, count: dead.length });
  yield wake(next);
  if (next <= now) yield act({ kind: 'createSandbox', attempt: (sandbox?.attempt ?? -1) + 1 });
}

function* advanceEntry(view: PodView, entry: Entry, skipped: string | undefined): Rule {
  const { now } = view;
  const { container, since } = entry;
  const { current, recorded } = container;
  yield* collectOldRuns(container);
  if (current?.state === 'unknown') return yield kill(current);
  if (isLive(current) && current.state === 'running') {
    const own = stopOfEntry(now, entry, skipped);
    const stop = view.stops[current.id] ?? own;
    if (stop === undefined) return;
    yield { run: current.id, stop };
    return yield* endRun(view, current, Math.min(stop.deadline, own?.deadline ?? entry.stageEnd));
  }
  const { at, nextBackoffSeconds } = nextTry(view, container);
  if (at > now) return yield wake(at);
  const attempt = attemptOf(container);
  // A pull that failed before the entry's turn causes no wait.
  yield* ensureImage(view, container, attempt, (failure) => (failure.at < since ? now : retryAt(failure)));
  const isAnnounced = recorded !== undefined && announcedAttempt(view.pod, recorded) === attempt;
  if (isAnnounced) yield* startRun(view, container, attempt, nextBackoffSeconds);
}

function stopOfEntry(now: Millis, entry: Entry, skipped: string | undefined): Stop | undefined {
  const stop = { at: now, deadline: now, restart: false } as const;
  if (entry.givenUp) return { ...stop, entry: 'GivenUp', message: GIVEN_UP };
  if (skipped !== undefined) return { ...stop, entry: 'Skipped', message: skipped };
  const message = outOfTime(entry, now);
  return message === undefined ? undefined : { ...stop, entry: 'DeadlineExceeded', message };
}

function* cancelPreparations(view: PodView, list: DeferList | undefined): Rule {
  const open = (list?.entries ?? []).filter(({ end }) => end === undefined).map(({ container }) => container);
  const further = isToRun(list) ? [...open, ...view.init.filter(({ sidecar }) => sidecar)] : [];
  const wanted = new Set(further.map(({ name }) => name));
  const starts = underWay(view, 'startContainer').filter(({ containerKind }) => containerKind === 'defer');
  for (const action of [...underWay(view, 'pullImage'), ...underWay(view, 'checkImage'), ...starts])
    if (!wanted.has(action.container)) yield act({ kind: 'cancel', key: actionKey(action) });
  if (!isToRun(list) && view.isUnderWay('mountVolumes')) yield act({ kind: 'cancel', key: 'mountVolumes' });
}

/** Returns true once nothing of the Pod is left on the node. */
export function* removeEverything(view: PodView): Rule<boolean> {
  const { sandboxes, containers, volumes } = view.observed;
  // Removing a sandbox also removes its containers.
  for (const { id } of sandboxes) yield act({ kind: 'removeSandbox', id });
  for (const { id, name, attempt, sandboxId } of containers)
    if (!sandboxes.some((sandbox) => sandbox.id === sandboxId))
      yield act({ kind: 'removeContainer', id, container: name, attempt });
  if (volumes !== 'gone' && !view.isUnderWay('mountVolumes')) yield act({ kind: 'removeFiles' });
  return sandboxes.length === 0 && containers.length === 0 && volumes === 'gone';
}

/** Frees the disk space of an evicted Pod's containers. Source: v1.33's pod_container_deletor.go. */
export function* removeRecorded({ pod, observed }: PodView): Rule {
  for (const runs of recordedRuns(pod, observed.containers))
    for (const { id, name, attempt } of runs.length > 1 ? runs.slice(0, -1) : runs)
      yield act({ kind: 'removeContainer', id, container: name, attempt });
}
