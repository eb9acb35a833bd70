/**
 * The life of a Pod on its node, decided: what is observed goes in, what to do next comes out.
 *
 * Boundary: pure and synchronous. No clock, no I/O, no randomness, no promises; the node agent does the effects and comes back
 * with new observations. Nothing else in lifepod holds a rule of a Pod's life.
 *
 * Invariants, held by the property tests in src/simulation:
 *  1. Init container i+1 never starts before i has succeeded in the same sandbox.
 *  2. There are never two live runs of one container.
 *  3. Nothing is started once the Pod terminates or is finished.
 *  4. A grace period only shrinks; what lives at the deadline is killed.
 *  5. Deciding again on the same input asks for nothing that is under way.
 *  6. A new decide() with rebuilt memory, at any point, ends in the same place.
 */
import { parseTime } from '../machinery/time.ts';
import { type DeferList, deferListOf, endsOf } from './defer.ts';
import { removeEverything, removeRecorded, stopEverything, stopWithDefers } from './ending.ts';
import { factsOf } from './facts.ts';
import { replaceChangedImages, runPostStartHooks } from './hooks.ts';
import type { Plan } from './plan.ts';
import { countProbes, runProbes } from './probes.ts';
import { finishedForGood, lookForImages, type Progress, progress } from './progress.ts';
import { ERR_IMAGE_PULL_SHOWN_MILLIS, type StatusInput, statusOf } from './status.ts';
import { stopsToKeep } from './stops.ts';
import { activeDeadline, completion, terminationInForce } from './termination.ts';
import { transitionsOf } from './transitions.ts';
import { newTurn, type Turn } from './turn.ts';
import type { Decision, Input, Termination } from './types.ts';
import type { ContainerView } from './view.ts';

export function decide(input: Input): Decision {
  const { now, observed, memory, pod } = input;
  const turn = newTurn(input);
  const { view, plan } = turn;
  const startedAt = parseTime(pod.status?.startTime) ?? now;

  // 1. What do probes, hooks and a changed image say of the runs there are?
  countProbes(turn);
  let termination = terminationInForce(input, view, startedAt);
  if (termination === undefined) {
    runPostStartHooks(turn);
    replaceChangedImages(turn);
  }

  // 2. Take the Pod a step further; or, once it ends or is over, a step nearer to nothing running.
  let stage: Progress = { stage: 'preparing' };
  if (termination === undefined) {
    stage = progress(turn);
    if (stage.stage === 'preparing') lookForImages(view, 0, plan);
    if (stage.stage === 'finished') termination = completion(view, now);
    else plan.wake(activeDeadline(view, startedAt) ?? now);
  } else {
    stage = finishedForGood(turn) ?? stage;
  }
  const list = deferListOf(turn, termination);
  if (termination !== undefined && list?.over) termination = { ...termination, over: true };
  const stopped = termination !== undefined && stop(turn, termination, list);
  // While the list runs, it and the sidecars are probed as in a living Pod.
  const lives = ({ kind, sidecar }: ContainerView) => (kind === 'defer' || sidecar) && list?.turn !== undefined;
  runProbes(turn, (container) => termination !== undefined && (list?.over !== false || !lives(container)));

  // 3. Say how it stands.
  const given: StatusInput = { ...turn, termination, list, progress: stage, startedAt, stopped };
  const facts = factsOf(given);
  const transitions = transitionsOf(given);
  wakeForImagePullStatus(input, plan);

  // 4. Clear away what is left: of a deleted Pod everything, of a finished one all but its containers' records.
  const ending = termination?.deletionTimestamp !== undefined;
  const nothingLeft = stopped && ending && removeEverything(view, plan);
  if (stopped && !ending && observed.volumes !== 'unmounted') plan.act({ kind: 'unmountVolumes' });
  const evicted = termination?.reason === 'NodePressure' || input.nodeEnd?.evicted === true;
  if (stopped && !ending && evicted) removeRecorded(view, plan);
  // An object with finalizers stays after the node's last word: deletionGracePeriodSeconds 0 tells that it was said.
  const spoken = input.removed || pod.metadata.deletionGracePeriodSeconds === 0;
  if (nothingLeft && !spoken) plan.act({ kind: 'finalizeDeletion' });

  const initialized = view.initialized || stage.stage === 'running';
  return {
    actions: plan.actions,
    status: input.removed ? undefined : statusOf(given),
    memory: {
      announced: new Set(facts.keys()),
      recorded: new Set(transitions.keys()),
      probes: turn.probes,
      stops: turn.stops,
      signalledAt: turn.signalledAt,
      ended: endsOf(list),
      interrupted: memory.interrupted,
      unstarted: memory.unstarted,
      ...(termination === undefined ? {} : { termination }),
      ...(initialized && view.sandbox !== undefined ? { initializedInSandbox: view.sandbox.attempt } : {}),
    },
    stops: stopsToKeep(turn),
    events: [...facts].filter(([key]) => !memory.announced.has(key)).map(([, event]) => event),
    transitions: [...transitions.values()].filter(({ key }) => !memory.recorded.has(key)).sort((a, b) => a.at - b.at),
    wakeAt: plan.wakeAt,
    done: nothingLeft && spoken,
  };
}

function stop(turn: Turn, termination: Termination, list: DeferList | undefined): boolean {
  if (list !== undefined && list.skipped === undefined) return stopWithDefers(turn, termination, list);
  // How an entry ended that ran before is written down before its run goes.
  const isTold = list?.entries.every(({ container, end }) => container.latest === undefined || end?.recorded) ?? true;
  return stopEverything(turn, termination.deadline) && isTold;
}

/** A failed pull shows as ErrImagePull first and as ImagePullBackOff a moment later. */
function wakeForImagePullStatus({ observed, now }: Input, plan: Plan): void {
  for (const [key, failure] of Object.entries(observed.failures))
    if ((key.startsWith('pullImage/') || failure.image !== undefined) && now - failure.at < ERR_IMAGE_PULL_SHOWN_MILLIS)
      plan.wake(failure.at + ERR_IMAGE_PULL_SHOWN_MILLIS);
}
