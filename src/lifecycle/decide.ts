/**
 * Decides the life of a Pod on its node: observations go in, the next actions come out.
 * decide() is pure and synchronous: it uses no clock, I/O, randomness or promises. The node agent carries out the actions and returns with
 * new observations.
 *
 * Invariants, checked by the property tests in src/simulation:
 * 1. Init container i+1 never starts before i has succeeded, or has started as a sidecar, in the same sandbox.
 * 2. A container never has two live runs.
 * 3. Once the Pod is terminating or finished, only defer containers and sidecars are started.
 * 4. A deadline moves later only by an extension, an outage, or the reserve of the PostExit stage. Containers that still run at the
 *    deadline are killed, but not within 2 s of their stop signal.
 * 5. A second decision on the same input requests no action that is already under way.
 * 6. decide() with a memory rebuilt at any point leads to the same final state.
 */
import { ERR_IMAGE_PULL_SHOWN_MILLIS, isInitialized, type Situation } from './container-phases.ts';
import { endsOf } from './defer.ts';
import { act, type Rule, reduce, wake } from './effects.ts';
import { postStartHooks, stopOfRun } from './hooks-and-stops.ts';
import { countedProbes, dueProbes, stopOfProbes } from './probes.ts';
import { reportOf } from './report.ts';
import { advancePod, finishedForGood, progressOf } from './start-order.ts';
import { statusOf } from './status.ts';
import { activeDeadline } from './termination-causes.ts';
import { type End, endingOf } from './termination-stages.ts';
import { endPod, removeEverything, removeRecorded } from './termination-waves.ts';
import { type Decision, type Input, type Journal, runKey, type Stop } from './types.ts';
import { type ContainerView, isMain, type PodView, viewOf } from './view.ts';

export function decide(input: Input): Decision {
  // 1. Learn: add the newest probe results and the stops that follow from observations. Determine the termination.
  const view = learn(viewOf(input));
  const finished = finishedForGood(view);
  const end = endingOf(view, finished !== undefined);
  const situation: Situation = { view, finished, end, progress: progressOf(view) };

  // 2. Rules: collect the requested actions.
  const outcome: Outcome = { stopped: false, nothingLeft: false };
  const plan = reduce(view, rules(view, end, outcome));

  // 3. Report: derive the status, the Events and the steps of the record.
  const { events, steps, held } = reportOf(situation, plan, outcome.stopped);
  const keys = new Set(view.observed.containers.map(({ id }) => runKey(id, 'preStop')));
  const preStops = Object.fromEntries(Object.entries(view.observed.hooks).filter(([key]) => keys.has(key)));
  const termination = end?.termination ?? input.memory.termination;
  const ended = endsOf(end?.list);
  const journal: Journal = { stops: plan.stops, preStops, ended, ...(termination && { termination }) };
  return {
    actions: plan.actions,
    status: input.removed ? undefined : statusOf(situation, outcome.stopped),
    memory: {
      ...input.memory,
      ...journal,
      probes: plan.probes,
      signalledAt: plan.signalledAt,
      announced: new Set(events.keys()),
      recorded: held,
      ...(isInitialized(situation) && view.sandbox && { initializedInSandbox: view.sandbox.attempt }),
    },
    journal: hasNewEntries(journal, input.memory) ? journal : undefined,
    events: [...events].filter(([key]) => !input.memory.announced.has(key)).map(([, event]) => event),
    transitions: [...steps.values()].sort((a, b) => a.at - b.at),
    wakeAt: plan.wakeAt,
    done: outcome.nothingLeft && isDeletionFinal(view),
  };
}

function learn(view: PodView): PodView {
  const { pod, removed, nodeEnd, memory } = view.input;
  const causes = [memory.termination, pod.status?.termination, pod.metadata.deletionTimestamp, nodeEnd];
  const isEnding = removed || causes.some((cause) => cause !== undefined);
  const counted: PodView = { ...view, probes: countedProbes(view) };
  const learnedStop = (container: ContainerView): [string, Stop][] => {
    const run = container.current;
    if (run?.state !== 'running' || view.stops[run.id] !== undefined) return [];
    const stop =
      (isEnding && isMain(container) ? undefined : stopOfProbes(counted, container, run)) ??
      (isEnding ? undefined : stopOfRun(view, container, run));
    return stop === undefined ? [] : [[run.id, stop]];
  };
  return { ...counted, stops: { ...view.stops, ...Object.fromEntries(view.all.flatMap(learnedStop)) } };
}

/** stopped: no container and no sandbox runs. nothingLeft: nothing of the Pod is left on the node. */
type Outcome = { stopped: boolean; nothingLeft: boolean };

function* rules(view: PodView, end: End | undefined, outcome: Outcome): Rule {
  if (end === undefined) {
    yield* postStartHooks(view);
    yield* advancePod(view);
    yield wake(activeDeadline(view));
  } else {
    outcome.stopped = yield* endPod(view, end);
    if (outcome.stopped) outcome.nothingLeft = yield* clearAway(view, end);
  }
  yield* dueProbes(view, (container) => end !== undefined && !isProbedInEnd(container, end, view.now));
  yield* imagePullStatus(view);
}

const isProbedInEnd = ({ kind, sidecar }: ContainerView, { list, termination }: End, now: number): boolean =>
  list?.open === true && (kind === 'defer' || (sidecar && list.skipped === undefined && now < termination.deadline));

/** Cleans up a stopped Pod. Returns true once nothing of a deleted Pod is left on the node. */
function* clearAway(view: PodView, { termination }: End): Rule<boolean> {
  const { pod, nodeEnd, removed } = view.input;
  if (pod.metadata.deletionTimestamp !== undefined || removed) {
    const nothingLeft = yield* removeEverything(view);
    if (nothingLeft && !isDeletionFinal(view)) yield act({ kind: 'finalizeDeletion' });
    return nothingLeft;
  }
  if (view.observed.volumes !== 'unmounted') yield act({ kind: 'unmountVolumes' });
  if (termination.reason === 'NodePressure' || nodeEnd?.evicted === true) yield* removeRecorded(view);
  return false;
}

/** With deletionGracePeriodSeconds 0, the object exists only because of finalizers. */
const isDeletionFinal = ({ input: { removed, pod } }: PodView): boolean =>
  removed || pod.metadata.deletionGracePeriodSeconds === 0;

/** Wakes when the status changes from the failed pull's own reason to ImagePullBackOff. */
function* imagePullStatus({ observed }: PodView): Rule {
  for (const { action, image, at, unknown } of observed.failures)
    if (!unknown && (action.kind === 'pullImage' || image !== undefined)) yield wake(at + ERR_IMAGE_PULL_SHOWN_MILLIS);
}

/** Whether `now` has entries that `before`, the stored journal, lacks. Entries that only `before` has need no write. */
const hasNewEntries = (now: Journal, before: Journal): boolean =>
  JSON.stringify(now.termination) !== JSON.stringify(before.termination) ||
  (['stops', 'preStops', 'ended'] as const).some((field) =>
    Object.keys(now[field] ?? {}).some((key) => before[field]?.[key] === undefined),
  );
