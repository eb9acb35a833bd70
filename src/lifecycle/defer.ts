/**
 * Determines the state of a Pod's defer containers, called entries. An end is final once the Pod's status has it. The status announces each
 * attempt before its start, so a new agent can continue where the previous agent stopped.
 * Source: the specification of defer containers.
 */
import {
  GIVEN_UP,
  GRACE_PASSED,
  NO_GRACE,
  NODE_HAD_NO_TIME,
  SANDBOX_LOST,
  STAGE_ENDED,
} from '../api/core/v1/pod/status/deferred.ts';
import type { Termination } from '../api/core/v1/pod/status/termination.ts';
import type { DeferContainer } from '../api/generated/types.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import { imageActions } from './container-steps.ts';
import { type Restart, restartAfter } from './restart.ts';
import { isCompletion, isDue, isPostExit } from './termination-causes.ts';
import { actionKey, type ContainerState, type EntryEnd, type FailedAction } from './types.ts';
import { type ContainerView, isLive, isMain, isRunning, type PodView, succeeded } from './view.ts';

export interface Entry {
  container: ContainerView;
  spec: DeferContainer;
  since: Millis; // When its turn began; the time of the decision if the entry does not have its turn.
  timeoutAt: Millis; // Infinite without timeoutSeconds.
  stageEnd: Millis; // preExitDeadline for a PreExit entry, deadline for a PostExit entry.
  late: string; // The message of an entry that ends because stageEnd has passed.
  givenUp: boolean; // A client listed the entry in status.termination.skip.
  end: EntryEnd | undefined;
}

export interface DeferList {
  entries: readonly Entry[];
  byContainer: ReadonlyMap<ContainerView, Entry>;
  turn: Entry | undefined; // Undefined if no entry is left, or if the next one waits for containers.
  open: boolean;
  skipped: string | undefined; // Why no further entry runs; undefined: entries may run.
}

const NO_EXIT_CODE = 137; // For Skipped entries and for entries without an exit code. After a failed pull or start, it is 128.

/** `ended`: ends that earlier decisions determined, by entry name. */
export function listOf(view: PodView, termination: Termination, ended: Readonly<Record<string, EntryEnd>>): DeferList {
  const skipped = whySkipped(view);
  const skip = new Set(view.pod.status?.termination?.skip);
  // A container that is being started may need cleanup, so entries wait for it until the end of their stage.
  const starting = [...view.init, ...view.apps].some(isBeginning);
  const running = mainContainers(view).some(({ runs }) => runs.some(isRunning));
  let turn: Entry | undefined;
  let isNext = true;
  const entries = view.defers.map((container): Entry => {
    const entry = entryOf(view, container, termination, skip);
    entry.end = recordedEnd(container, view.now) ?? ended[container.name];
    if (entry.end !== undefined || (!isNext && skipped === undefined)) return entry;
    const forApps = running && isPostExit(entry.spec) && isDue(entry.spec, termination.reason);
    const waits = !skipped && ((starting && view.now < entry.stageEnd) || forApps);
    if (!waits) entry.end = endOfTurn(view, entry, termination, skipped);
    if (!waits && entry.end === undefined) turn ??= entry;
    isNext &&= entry.end !== undefined;
    return entry;
  });
  const byContainer = new Map(entries.map((entry) => [entry.container, entry]));
  return { entries, byContainer, turn, open: entries.some(({ end }) => end === undefined), skipped };
}

function entryOf({ now }: PodView, container: ContainerView, so: Termination, skip: ReadonlySet<string>): Entry {
  const spec = container.spec as DeferContainer;
  const { name, timeoutSeconds = Number.POSITIVE_INFINITY } = spec;
  const since = so.turn?.entry === name ? so.turn.since : now;
  return {
    container,
    spec,
    since,
    timeoutAt: since + timeoutSeconds * 1000,
    end: undefined,
    stageEnd: isPostExit(spec) ? so.deadline : so.preExitDeadline,
    late: isPostExit(spec) || so.preExitDeadline === so.deadline ? GRACE_PASSED : STAGE_ENDED,
    givenUp: skip.has(name),
  };
}

/** Whether a start is under way for which entries wait. The restart of a sidecar does not count, so it delays no entry. */
const isBeginning = (container: ContainerView): boolean =>
  container.starting && (!container.sidecar || !hasBegun(container));

export const mainContainers = ({ all }: PodView): ContainerView[] => all.filter((each) => isMain(each));

/** Returns the last end of an init container, app container or PreExit entry; 0 if none has run. A lost container ends now. */
export const lastExit = (view: PodView): Millis => {
  const before = [...mainContainers(view), ...view.defers.filter(({ spec }) => !isPostExit(spec))];
  const ends = before.flatMap(({ isLost, runs }) => (isLost ? [view.now] : runs.map((run) => run.finishedAt ?? 0)));
  return Math.max(0, ...ends);
};

/** Returns why the whole list is skipped; undefined if it is not. */
function whySkipped(view: PodView): string | undefined {
  const { nodeEnd, pod, memory } = view.input;
  if (nodeEnd?.graceSeconds === 0) return NODE_HAD_NO_TIME;
  if (pod.metadata.deletionGracePeriodSeconds === 0) return NO_GRACE;
  // A new agent may find a container in state created while the runtime is still starting it.
  const mayHaveBegun = (each: ContainerView): boolean =>
    each.starting || hasBegun(each) || each.runs.some(({ id }) => memory.unstarted.has(id));
  return [...view.init, ...view.apps].some(mayHaveBegun) ? undefined : 'no container of the Pod had started';
}

const hasBegun = ({ runs, recorded }: ContainerView): boolean =>
  runs.some(({ state }) => state !== 'created') ||
  recorded?.state?.running !== undefined ||
  recorded?.lastState?.terminated !== undefined ||
  (recorded?.containerID ?? '') !== '';

/** Returns why the entry may not run; undefined if it may run, or run again. */
function whyNot(view: PodView, { spec, stageEnd, late, givenUp }: Entry, so: Termination): string | undefined {
  if (!isDue(spec, so.reason)) return `not due on ${so.reason}`;
  if (givenUp) return GIVEN_UP;
  const before = isPostExit(spec) ? whyNotWhen(view, spec) : whyNoPreExit(view, so);
  const passed = view.now >= stageEnd ? late : undefined;
  // While an app container is being started, `before` may still turn out to be wrong, so the passed time takes precedence.
  return view.apps.some(isBeginning) ? (passed ?? before) : (before ?? passed);
}

/** Returns why `when` excludes the entry; undefined if it does not. Sidecars do not count. */
function whyNotWhen({ apps }: PodView, { when = 'Always' }: DeferContainer): string | undefined {
  const allSucceeded = apps.every(({ latest, recorded }) =>
    latest === undefined ? recorded?.state?.terminated?.exitCode === 0 : succeeded(latest),
  );
  if (when === 'Succeeded' && !allSucceeded) return 'the app containers did not succeed';
  return when === 'Failed' && allSucceeded ? 'the app containers did not fail' : undefined;
}

/** PreExit entries need the app containers. Returns why these are missing; undefined if they are not, or if the Pod has completed. */
function whyNoPreExit(view: PodView, so: Termination): string | undefined {
  if (!view.apps.some(hasBegun)) return 'no app container had started';
  if (isCompletion(so)) return undefined;
  const isCreated = view.apps.some(({ current }) => current !== undefined && current.state !== 'created');
  return view.sandbox?.ready === true && (isCreated || view.sandbox.attempt === 0) ? undefined : SANDBOX_LOST;
}

export const endsOf = (list: DeferList | undefined): Record<string, EntryEnd> =>
  Object.fromEntries(list?.entries.flatMap(({ spec, end }) => (!end || end.recorded ? [] : [[spec.name, end]])) ?? []);

/**
 * Returns the end that the status has; undefined if it has none. The status has whole seconds, so `at` is the end of the run or, without
 * one, the latest possible time, so that no earlier step of the entry follows it.
 */
function recordedEnd({ latest, recorded }: ContainerView, now: Millis): EntryEnd | undefined {
  const terminated = recorded?.state?.terminated;
  if (recorded === undefined || terminated === undefined) return undefined;
  const { reason = 'Error', exitCode, message } = terminated;
  const [second, runEnd = 0] = [parseTime(terminated.finishedAt) ?? 0, latest?.finishedAt];
  return { at: runEnd >= second ? runEnd : Math.min(now, second + 999), reason, exitCode, message, recorded };
}

export const retries = ({ spec }: Entry): boolean => (spec.restartPolicy ?? 'Never') !== 'Never';

export const outOfTime = ({ spec, timeoutAt, stageEnd, late }: Entry, at: Millis): string | undefined =>
  at >= timeoutAt ? `Container ${spec.name} exceeded its timeoutSeconds` : at >= stageEnd ? late : undefined;

/** Returns undefined while the entry runs, will run or is starting. The start of a container may take longer than timeoutSeconds. */
function endOfTurn(view: PodView, entry: Entry, so: Termination, skipped: string | undefined): EntryEnd | undefined {
  const { now, input } = view;
  const { container, spec, stageEnd, timeoutAt } = entry;
  const { latest: run } = container;
  const never = { at: now, exitCode: NO_EXIT_CODE };
  if (run?.state === 'exited' && !container.starting) return endOfRun(view, entry, run, so, skipped);
  if (isRunning(run)) return undefined;
  const isLost = !isPostExit(spec) && whyNoPreExit(view, so) === SANDBOX_LOST;
  if (container.starting && skipped !== undefined) return { ...never, reason: 'Skipped', message: skipped };
  if (container.starting && isLost) return { ...never, reason: 'SandboxLost', message: 'the sandbox was lost' };
  if (container.starting)
    return now < stageEnd ? undefined : { ...never, reason: 'DeadlineExceeded', message: entry.late };
  const why = (entry.givenUp ? undefined : skipped) ?? whyNot(view, entry, so);
  const failure = failureInTurn(view, entry);
  const failed = failure && `${failure.reason}: ${failure.message}`;
  const isLast = now >= stageEnd || !(retries(entry) || input.memory.unstarted.has(container.latest?.id ?? ''));
  if (failure !== undefined && isLast && why !== GIVEN_UP)
    return { at: failure.at, reason: 'Error', exitCode: 128, message: failed };
  // An entry with an exited run ends as cut off, unless the whole list is skipped.
  const hasRun = (skipped === undefined || why === GIVEN_UP) && container.runs.some(({ state }) => state === 'exited');
  const cutOff = why === GIVEN_UP ? 'GivenUp' : why === SANDBOX_LOST ? 'SandboxLost' : 'DeadlineExceeded';
  if (why !== undefined) return { ...never, reason: hasRun ? cutOff : 'Skipped', message: why };
  const message = failed ?? `Container ${spec.name} did not start in its timeoutSeconds`;
  return now < timeoutAt ? undefined : { ...never, reason: 'DeadlineExceeded', message };
}

function endOfRun(view: PodView, entry: Entry, run: ContainerState, so: Termination, skipped?: string) {
  const { now, stops } = view;
  const { container, spec, stageEnd, timeoutAt } = entry;
  const { finishedAt: at = now, exitCode = NO_EXIT_CODE } = run;
  const stop = stops[run.id];
  const wasStopped = stop !== undefined && at >= stop.at;
  const endAs = (reason: string, message = wasStopped ? (stop.message ?? 'it was stopped') : undefined): EntryEnd => ({
    at,
    reason,
    exitCode,
    run,
    message,
  });
  const interrupted = wasInterrupted(view, container, run);
  if (exitCode === 0 && at < timeoutAt && !wasStopped) return endAs('Completed');
  if (wasStopped && stop.entry === 'Skipped') return { ...endAs('Skipped'), exitCode: NO_EXIT_CODE };
  if (wasStopped && stop.entry !== undefined) return endAs(stop.entry);
  if (at >= timeoutAt && !interrupted) return endAs('DeadlineExceeded', outOfTime(entry, at));
  if (skipped !== undefined && retries(entry))
    return { at: now, exitCode: NO_EXIT_CODE, reason: 'Skipped', message: skipped };
  const error = endAs(run.reason === 'OOMKilled' ? 'OOMKilled' : 'Error');
  const lost = interrupted && (container.current === undefined || view.sandbox?.ready !== true);
  const why = skipped ?? (isPostExit(spec) ? undefined : whyNoPreExit(view, so));
  if (why !== undefined || now >= stageEnd) return lost ? endAs('SandboxLost', 'the sandbox was lost') : error;
  if (!retries(entry) && !interrupted) return error;
  if (now >= timeoutAt) return { ...endAs('DeadlineExceeded', outOfTime(entry, now)), at: now };
  return entry.givenUp ? { ...endAs('GivenUp', GIVEN_UP), at: now } : undefined;
}

/** Whether the run was cut off: the agent died before it recorded the start, or the sandbox was lost while the container ran. */
export const wasInterrupted = (view: PodView, container: ContainerView, run: ContainerState): boolean =>
  view.input.memory.interrupted.has(run.id) ||
  (view.input.memory.unstarted.has(run.id) && run.startedAt === undefined) ||
  ((run.exitCode !== 0 || view.stops[run.id] !== undefined) &&
    (container.current === undefined || view.sandbox?.ready !== true));

/** Returns when the next attempt may start, and the back-off after that attempt. */
export function nextTry(view: PodView, container: ContainerView): Omit<Restart, 'delaySeconds'> {
  const { current } = container;
  return current?.state === 'exited' && !wasInterrupted(view, container, current)
    ? restartAfter(current, view.stops)
    : { at: 0, nextBackoffSeconds: 1 };
}

export const attemptOf = ({ current, nextAttempt }: ContainerView): number =>
  isLive(current) ? current.attempt : nextAttempt;

/** Returns the failure to look up or pull the image of the entry's attempt, or to start it. Failures before the turn do not count. */
export function failureInTurn(view: PodView, { container, since }: Entry): FailedAction | undefined {
  const attempt = attemptOf(container);
  const { pull, check } = imageActions(container, attempt);
  return [actionKey(pull), actionKey(check), `startContainer/${container.name}/${attempt}`]
    .map((key) => view.failureOf(key))
    .find((failure) => failure !== undefined && failure.at >= since);
}

/** Whether failurePolicy counts the entry as failed. An entry that is skipped because of its onReasons or its `when` does not count. */
export const hasFailed = (view: PodView, { end, spec }: Entry, { reason }: Termination): boolean =>
  end !== undefined &&
  end.reason !== 'Completed' &&
  !(end.reason === 'Skipped' && !isDue(spec, reason)) &&
  !(end.reason === 'Skipped' && end.message !== GIVEN_UP && whyNotWhen(view, spec) !== undefined);
