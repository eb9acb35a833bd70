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
import { factsOf } from './facts.ts';
import { replaceChangedImages, runPostStartHooks } from './hooks.ts';
import type { Plan } from './plan.ts';
import { countProbes, runProbes } from './probes.ts';
import { finishedForGood, lookForImages, type Progress, progress } from './progress.ts';
import { ERR_IMAGE_PULL_SHOWN_MILLIS, type StatusInput, statusOf } from './status.ts';
import { activeDeadline, completion, removeEverything, stopEverything, terminationInForce } from './termination.ts';
import { newTurn } from './turn.ts';
import type { Decision, Input } from './types.ts';

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
  const stopped = termination !== undefined && stopEverything(turn, termination.deadline);
  runProbes(turn, termination !== undefined);

  // 3. Say how it stands.
  const given: StatusInput = { ...turn, termination, progress: stage, startedAt, stopped };
  const facts = factsOf(given);
  wakeForImagePullStatus(input, plan);

  // 4. Clear away what is left: of a deleted Pod everything, of a finished one all but its containers' records.
  const ending = termination?.reason === 'Deleted';
  const nothingLeft = stopped && ending && removeEverything(view, plan);
  if (stopped && !ending && observed.volumes !== 'unmounted') plan.act({ kind: 'unmountVolumes' });
  // An object with finalizers stays after the node's last word: deletionGracePeriodSeconds 0 tells that it was said.
  const spoken = input.removed || pod.metadata.deletionGracePeriodSeconds === 0;
  if (nothingLeft && !spoken) plan.act({ kind: 'finalizeDeletion' });

  const initialized = view.initialized || stage.stage === 'running';
  return {
    actions: plan.actions,
    status: input.removed ? undefined : statusOf(given),
    memory: {
      announced: new Set(facts.keys()),
      probes: turn.probes,
      stops: turn.stops,
      signalledAt: turn.signalledAt,
      ...(termination === undefined ? {} : { termination }),
      ...(initialized && view.sandbox !== undefined ? { initializedInSandbox: view.sandbox.attempt } : {}),
    },
    events: [...facts].filter(([key]) => !memory.announced.has(key)).map(([, event]) => event),
    wakeAt: plan.wakeAt,
    done: nothingLeft && spoken,
  };
}

/** A failed pull shows as ErrImagePull first and as ImagePullBackOff a moment later. */
function wakeForImagePullStatus({ observed, now }: Input, plan: Plan): void {
  for (const [key, failure] of Object.entries(observed.failures))
    if (key.startsWith('pullImage/') && now - failure.at < ERR_IMAGE_PULL_SHOWN_MILLIS)
      plan.wake(failure.at + ERR_IMAGE_PULL_SHOWN_MILLIS);
}
