/**
 * Defer containers, the destructors of a Pod: which entries of the list have ended and how, whose turn it is, and how far the
 * deadline is extended for them. What is done about it is in ending.ts.
 *
 * Source: the specification of defer containers. An entry's end is final once the Pod's status tells it; before an attempt
 * starts, the status tells that it is about to: so any agent goes on where the one before was.
 */
import type { ContainerStatus, DeferContainer } from '../api/generated/types.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import { MINIMUM_GRACE_SECONDS } from './hooks.ts';
import type { Turn } from './turn.ts';
import {
  actionKey,
  type ContainerState,
  type Failure,
  runKey,
  type Termination,
  type TerminationReason,
} from './types.ts';
import { type ContainerView, isLive, isRunning, type PodView, recordedStatuses } from './view.ts';

export interface EntryEnd {
  at: Millis;
  /** Completed, Error, OOMKilled, DeadlineExceeded, Skipped. */
  reason: string;
  exitCode: number;
  message?: string;
  /** The run that it ended with; absent: none of its runs counts. */
  run?: ContainerState;
  /** The status that tells it already. */
  recorded?: ContainerStatus;
}

export interface Entry {
  container: ContainerView;
  spec: DeferContainer;
  /** When its turn began, or will at the earliest; its timeout counts from then. */
  begunAt: Millis;
  /** undefined: it has not ended */
  end: EntryEnd | undefined;
}

export interface DeferList {
  entries: readonly Entry[];
  /** The first entry that has not ended; undefined: the list has ended. */
  turn: Entry | undefined;
  /** The time is over: nothing starts any more, and what runs is told to stop. */
  over: boolean;
  /** The deadline has passed, and may yet be moved: nothing begins meanwhile. */
  held: boolean;
  /** The termination with its deadline moved, which counts once the status tells it. */
  proposed: Termination | undefined;
  /** Why no entry at all runs. */
  skipped: string | undefined;
}

export const DEFAULT_MAX_EXTENSION_SECONDS = 3600;

/** When all that is left is killed. */
export const killTime = (termination: Termination): Millis => termination.deadline + MINIMUM_GRACE_SECONDS * 1000;

/** Exit code of an entry that no process stands for. */
const NO_EXIT_CODE = 137;

const NODE_REASONS: ReadonlySet<TerminationReason> = new Set(['NodePressure', 'NodeShutdown']);

/** undefined: the Pod has no list, or its object is gone. */
export function deferListOf(turn: Turn, termination: Termination | undefined): DeferList | undefined {
  const { view, input, now } = turn;
  if (view.defers.length === 0 || termination === undefined || input.removed) return undefined;
  const skipped = whySkipped(view, termination);
  const within = entriesOf(turn, termination, skipped, false);
  const current = within.find(({ end }) => end === undefined);
  const late = termination.over === true || now >= termination.deadline;
  if (!late || current === undefined)
    return { entries: within, turn: current, over: late, held: false, proposed: undefined, skipped };

  // The node's time is no Pod's to extend, nor is there any for one that is to go at once and that a finalizer holds.
  const isFixed =
    input.nodeEnd !== undefined ||
    NODE_REASONS.has(termination.reason) ||
    view.pod.metadata.deletionGracePeriodSeconds === 0;
  const proposed = isFixed ? undefined : extension(turn, termination, current);
  const isAwaited = proposed !== undefined || (!isFixed && mayBeExtended(turn, current));
  if (!termination.over && now < killTime(termination) && isAwaited)
    return { entries: within, turn: current, over: false, held: true, proposed, skipped };
  const entries = entriesOf(turn, termination, skipped, true);
  const running = entries.find(({ end }) => end === undefined);
  return { entries, turn: running, over: true, held: false, proposed: undefined, skipped };
}

/** Nothing had begun that needs an end, or there is no time at all for one. */
function whySkipped(view: PodView, termination: Termination): string | undefined {
  if (termination.hard) return 'the node had no time for it';
  if (![...view.init, ...view.apps].some((container) => hasBegun(view, container)))
    return 'no container of the Pod had started';
  return undefined;
}

const hasBegun = (view: PodView, { spec, runs }: ContainerView): boolean =>
  runs.some((run) => run.state !== 'created') ||
  recordedStatuses(view.pod).some(
    ({ name, containerID, state, lastState }) =>
      name === spec.name &&
      (state?.running !== undefined || lastState?.terminated !== undefined || (containerID ?? '') !== ''),
  );

/** What works on the apps is of use only where they are. A Pod that completed by itself runs its whole list after them. */
function whyNoPreExit(view: PodView, { reason }: Termination): string | undefined {
  if (!view.apps.some((app) => hasBegun(view, app))) return 'no app container had started';
  if (reason === 'Completed') return undefined;
  const present = view.apps.some(({ current }) => current !== undefined && current.state !== 'created');
  return view.sandbox?.ready === true && present ? undefined : 'the sandbox was lost, and the app containers with it';
}

function entriesOf(turn: Turn, termination: Termination, noEntry: string | undefined, over: boolean): Entry[] {
  const { view } = turn;
  const noPreExit = noEntry ?? whyNoPreExit(view, termination);
  let begunAt = termination.startedAt;
  /** Whether all before have ended: only then an entry's own end is looked for. */
  let reached = true;
  return view.defers.map((container): Entry => {
    const spec = container.spec as DeferContainer;
    const preExit = spec.trigger !== 'PostExit';
    if (!preExit) begunAt = Math.max(begunAt, lastExit(view));
    const entry = { container, spec, begunAt };
    const notDue = preExit ? noPreExit : noEntry;
    const skipped = notDue !== undefined && !isRunning(container.latest) && !hasRun(container, termination);
    const last = over || notDue !== undefined;
    const end =
      recordedEnd(view, container) ??
      turn.input.memory.ended[spec.name] ??
      (skipped ? skip(turn, notDue) : undefined) ??
      (reached ? endOf(turn, entry, termination, last) : over ? skip(turn, GRACE_PASSED) : undefined);
    reached &&= end !== undefined;
    if (end !== undefined) begunAt = Math.max(begunAt, end.at);
    return { ...entry, end };
  });
}

/** It ended in a way that holds, though no entry is due any more. What was killed with its sandbox did not. */
const hasRun = ({ latest }: ContainerView, { hard }: Termination): boolean =>
  latest?.state === 'exited' && (hard === true || latest.exitCode === 0);

/** What has ended, by name. */
export const endsOf = (list: DeferList | undefined): Record<string, EntryEnd> =>
  Object.fromEntries((list?.entries ?? []).flatMap(({ spec, end }) => (end === undefined ? [] : [[spec.name, end]])));

const GRACE_PASSED = 'the grace period had passed';

const skip = ({ now }: Turn, message: string): EntryEnd => ({
  at: now,
  reason: 'Skipped',
  exitCode: NO_EXIT_CODE,
  message,
});

/** Of what a PostExit entry waits for. */
const lastExit = (view: PodView): Millis =>
  Math.max(0, ...[...view.init, ...view.apps].map(({ latest, sidecar }) => (sidecar ? 0 : (latest?.finishedAt ?? 0))));

/** An entry's status in the object. */
export const recordedEntry = (view: PodView, { spec }: ContainerView): ContainerStatus | undefined =>
  view.pod.status?.deferContainerStatuses?.find(({ name }) => name === spec.name);

function recordedEnd(view: PodView, container: ContainerView): EntryEnd | undefined {
  const recorded = recordedEntry(view, container);
  const terminated = recorded?.state?.terminated;
  if (recorded === undefined || terminated === undefined) return undefined;
  const { reason = 'Error', exitCode, message } = terminated;
  return {
    // The runtime knows it to the millisecond.
    at: container.latest?.finishedAt ?? parseTime(terminated.finishedAt) ?? 0,
    reason,
    exitCode,
    ...(message === undefined ? {} : { message }),
    recorded,
  };
}

export const retries = ({ spec }: Pick<Entry, 'spec'>): boolean => (spec.restartPolicy ?? 'Never') !== 'Never';

export const timeoutAt = ({ spec, begunAt }: Pick<Entry, 'spec' | 'begunAt'>): Millis | undefined =>
  spec.timeoutSeconds === undefined ? undefined : begunAt + spec.timeoutSeconds * 1000;

/** How the entry whose turn it is ended, or undefined while it runs or is to run. */
function endOf(turn: Turn, entry: Omit<Entry, 'end'>, termination: Termination, over: boolean): EntryEnd | undefined {
  const { now, view, stops } = turn;
  const { container } = entry;
  const run = container.latest;
  const running: boolean = isRunning(run);
  if (running || isStartingEntry(view, container)) return undefined;
  const limit = timeoutAt(entry) ?? Number.POSITIVE_INFINITY;

  if (run?.state !== 'exited') {
    const failure = failureOf(turn, entry);
    const inherited = run !== undefined && turn.input.memory.unstarted.has(run.id);
    if (failure !== undefined && ((!retries(entry) && !inherited) || over)) return failed(failure);
    if (over) return skip(turn, GRACE_PASSED);
    if (now < limit) return undefined;
    const message = failure === undefined ? 'it did not start within its timeoutSeconds' : failure.message;
    return { at: now, reason: 'DeadlineExceeded', exitCode: NO_EXIT_CODE, message };
  }
  const at = run.finishedAt ?? now;
  const exitCode = run.exitCode ?? NO_EXIT_CODE;
  const ended = (reason: string): EntryEnd => ({ at, reason, exitCode, run });
  const told = at >= (stops[run.id]?.at ?? Number.POSITIVE_INFINITY);
  if (exitCode === 0 && at < limit && !told) return ended('Completed');
  if (at >= Math.min(termination.deadline, limit)) return ended('DeadlineExceeded');
  const reason = run.reason === 'OOMKilled' ? 'OOMKilled' : 'Error';
  if (over) return ended(reason);
  if (!retries(entry) && !wasInterrupted(turn, container, run)) return ended(reason);
  return now >= limit ? ended('DeadlineExceeded') : undefined;
}

const failed = ({ at, reason, message }: Failure): EntryEnd => ({
  at,
  reason: 'Error',
  exitCode: 128,
  message: `${reason}: ${message}`,
});

/** Another attempt than the one that has ended; the call that started that one may still be on its way back. */
const isStartingEntry = ({ observed }: PodView, { spec, latest }: ContainerView): boolean =>
  [...observed.inFlight].some(
    (key) =>
      key.startsWith(`startContainer/${spec.name}/`) &&
      (latest?.state !== 'exited' || key !== `startContainer/${spec.name}/${latest.attempt}`),
  );

/** It did not end: the agent was gone before its start was written down, or the sandbox was lost under it. */
export const wasInterrupted = (
  { input: { memory }, view, stops }: Turn,
  container: ContainerView,
  run: ContainerState,
): boolean =>
  memory.interrupted.has(run.id) ||
  (memory.unstarted.has(run.id) && run.startedAt === undefined) ||
  ((run.exitCode !== 0 || stops[run.id] !== undefined) &&
    (container.current === undefined || view.sandbox?.ready !== true));

/** The attempt that runs, or the next one. */
export const attemptOf = ({ current, nextAttempt }: ContainerView): number =>
  isLive(current) ? current.attempt : nextAttempt;

/** What the image or the start of the entry's next attempt failed with, in its turn. */
export function failureOf({ view }: Turn, { container, begunAt }: Omit<Entry, 'end'>): Failure | undefined {
  const { name, image = '' } = container.spec;
  const attempt = attemptOf(container);
  const keys = [
    actionKey({ kind: 'pullImage', container: name, attempt, image }),
    actionKey({ kind: 'checkImage', container: name, attempt, image, mustExist: false }),
    `startContainer/${name}/${attempt}`,
  ];
  return keys
    .map((key) => view.observed.failures[key])
    .find((failure) => failure !== undefined && failure.at >= begunAt);
}

/** The termination with a later deadline, if the Pod is granted one now that its time has passed. */
function extension(
  { view, input, probes, now }: Turn,
  termination: Termination,
  entry: Entry,
): Termination | undefined {
  const { spec } = view;
  const interval = spec.deferContainerGracePeriodExtensionInterval ?? 0;
  const count = spec.deferContainerGracePeriodExtensionCount ?? 0;
  const had = termination.extendedSeconds ?? 0;
  const left = (input.node.maxGracePeriodExtensionSeconds ?? DEFAULT_MAX_EXTENSION_SECONDS) - had;

  let seconds = 0;
  if (spec.deferContainerGracePeriodExtension === true) {
    const run = entry.container.current;
    const period = entry.spec.livenessProbe?.periodSeconds ?? 10;
    const succeededAt = run?.state === 'running' ? probes[runKey(run.id, 'liveness')]?.succeededAt : undefined;
    const until = succeededAt === undefined ? 0 : succeededAt + period * 1000;
    if (until > now) seconds = (until - termination.deadline) / 1000;
  } else if (interval > 0 && had < interval * count) {
    seconds = interval;
  }
  const granted = Math.min(seconds, left);
  if (granted <= 0) return undefined;
  return {
    ...termination,
    deadline: Math.round(termination.deadline + granted * 1000),
    extendedSeconds: Math.ceil(had + granted),
  };
}

/** The probe that would move the deadline is due, or was asked and has not answered yet. */
function mayBeExtended({ view, probes, plan, now }: Turn, { container }: Entry): boolean {
  const run = container.current;
  if (view.spec.deferContainerGracePeriodExtension !== true || run?.state !== 'running') return false;
  const asked = plan.pending(actionKey({ kind: 'runProbe', container: run.name, id: run.id, probe: 'liveness' }));
  const probe = probes[runKey(run.id, 'liveness')];
  return probe !== undefined && probe.passing !== false && (asked || probe.dueAt <= now);
}
