/**
 * The life of a Pod on its node, decided: what is observed goes in, what to do next comes out.
 *
 * Boundary: pure and synchronous. No clock, no I/O, no randomness, no promises; the node agent does the effects and comes back
 * with new observations. Nothing else in lifepod holds a rule of a Pod's life.
 *
 * Invariants, held by the property tests in src/simulation:
 *  1. Init container i+1 never starts before i has succeeded in the same sandbox.
 *  2. There are never two live runs of one container.
 *  3. Nothing but defer containers and sidecars is started once the Pod terminates or is finished.
 *  4. An end moves later only by an extension, an outage, or the reserve of the PostExit stage; what lives at the end is killed.
 *  5. Deciding again on the same input asks for nothing that is under way.
 *  6. A new decide() with rebuilt memory, at any point, ends in the same place.
 */
import { endsOf } from './defer.ts';
import { act, type Rule, reduce, wake } from './effects.ts';
import { endPod, removeEverything, removeRecorded } from './ending.ts';
import { ERR_IMAGE_PULL_SHOWN_MILLIS, isInitialized, type Situation } from './phases.ts';
import { countedProbes, dueProbes, stopOfProbes } from './probes.ts';
import { advancePod, finishedForGood, progressOf } from './progress.ts';
import { reportOf } from './report.ts';
import { type End, endingOf } from './stages.ts';
import { statusOf } from './status.ts';
import { postStartHooks, stopOfRun } from './stops.ts';
import { activeDeadline } from './termination.ts';
import { type Decision, type Input, type Journal, runKey, type Stop } from './types.ts';
import { type ContainerView, isMain, type PodView, viewOf } from './view.ts';

export function decide(input: Input): Decision {
  // 1. What do probes, hooks and a changed image say about the runs there are? Does the Pod end, until when, and whose turn is it?
  const view = learn(viewOf(input));
  const finished = finishedForGood(view);
  const end = endingOf(view, finished !== undefined);
  const situation: Situation = { view, finished, end, progress: progressOf(view) };

  // 2. Take the Pod a step further; or, once it ends or is over, a step nearer to nothing running.
  const outcome: Outcome = { stopped: false, nothingLeft: false };
  const plan = reduce(view, rules(view, end, outcome));

  // 3. Report how it stands.
  const { events, steps } = reportOf(situation, plan, outcome.stopped);
  const keys = new Set(view.observed.containers.map(({ id }) => runKey(id, 'preStop')));
  const preStops = Object.fromEntries(Object.entries(view.observed.hooks).filter(([key]) => keys.has(key)));
  const termination = end?.termination ?? input.memory.termination;
  const ended = endsOf(end?.list);
  const journal: Journal = { stops: plan.stops, preStops, ended, ...(termination && { termination }) };
  return {
    actions: plan.actions,
    status: input.removed ? undefined : statusOf(situation, outcome.stopped),
    memory: {
      ...{ ...input.memory, ...journal, probes: plan.probes, signalledAt: plan.signalledAt },
      ...{ announced: new Set(events.keys()), recorded: new Set(steps.keys()) },
      ...(isInitialized(situation) && view.sandbox && { initializedInSandbox: view.sandbox.attempt }),
    },
    journal: hasNews(journal, input.memory) ? journal : undefined,
    events: [...events].filter(([key]) => !input.memory.announced.has(key)).map(([, event]) => event),
    transitions: [...steps.values()].filter(({ key }) => !input.memory.recorded.has(key)).sort((a, b) => a.at - b.at),
    wakeAt: plan.wakeAt,
    done: outcome.nothingLeft && isSaid(view),
  };
}

/** The view with what the newest results of probes and hooks, and a changed image, mean for the runs. */
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

/** Of a Pod that ends: no container and no sandbox runs; nothing of it is on the node. */
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

/** While the list runs, it and the sidecars are probed as in a living Pod. */
const isProbedInEnd = ({ kind, sidecar }: ContainerView, { list, termination }: End, now: number): boolean =>
  list?.open === true && (kind === 'defer' || (sidecar && list.skipped === undefined && now < termination.deadline));

/** Of a deleted Pod everything goes, of a finished one all but the records of its containers. True once nothing is left. */
function* clearAway(view: PodView, { termination }: End): Rule<boolean> {
  const { pod, nodeEnd, removed } = view.input;
  if (pod.metadata.deletionTimestamp !== undefined || removed) {
    const nothingLeft = yield* removeEverything(view);
    if (nothingLeft && !isSaid(view)) yield act({ kind: 'finalizeDeletion' });
    return nothingLeft;
  }
  if (view.observed.volumes !== 'unmounted') yield act({ kind: 'unmountVolumes' });
  if (termination.reason === 'NodePressure' || nodeEnd?.evicted === true) yield* removeRecorded(view);
  return false;
}

/** An object with finalizers stays after the node's last word: deletionGracePeriodSeconds 0 shows that it was given. */
const isSaid = ({ input: { removed, pod } }: PodView): boolean =>
  removed || pod.metadata.deletionGracePeriodSeconds === 0;

/** A failed pull shows as ErrImagePull first and as ImagePullBackOff a moment later. */
function* imagePullStatus({ observed }: PodView): Rule {
  for (const { action, image, at, unknown } of observed.failures)
    if (!unknown && (action.kind === 'pullImage' || image !== undefined)) yield wake(at + ERR_IMAGE_PULL_SHOWN_MILLIS);
}

/** The journal holds what the next agent needs to go on; a run that is gone is no news. */
const hasNews = (now: Journal, before: Journal): boolean =>
  JSON.stringify(now.termination) !== JSON.stringify(before.termination) ||
  (['stops', 'preStops', 'ended'] as const).some((field) =>
    Object.keys(now[field] ?? {}).some((key) => before[field]?.[key] === undefined),
  );
