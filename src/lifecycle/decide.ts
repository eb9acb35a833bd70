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
import { newPlan, type Plan } from './plan.ts';
import { finishedForGood, lookForImages, type Progress, progress } from './progress.ts';
import { ERR_IMAGE_PULL_SHOWN_MILLIS, type StatusInput, statusOf } from './status.ts';
import { activeDeadline, completion, removeEverything, stopEverything, terminationInForce } from './termination.ts';
import type { Decision, Input, Memory } from './types.ts';
import { type PodView, viewOf } from './view.ts';

export function decide(input: Input): Decision {
  const { now, observed, memory, pod } = input;
  const view = viewOf(input);
  const plan = newPlan(observed, now);
  const startedAt = parseTime(pod.status?.startTime) ?? now;

  // 1. Is the Pod ending, and until when may that take?
  let termination = terminationInForce(input, view, startedAt);

  // 2. Take it a step further; or, once it ends or is over, a step nearer to nothing running.
  let stage: Progress = { stage: 'preparing' };
  if (termination === undefined) {
    stage = progress(view, plan, now);
    if (stage.stage === 'preparing') lookForImages(view, 0, plan);
    if (stage.stage === 'finished') termination = completion(view, now);
    else plan.wake(activeDeadline(view, startedAt) ?? now);
  } else {
    stage = finishedForGood(view) ?? stage;
  }
  const stopped = termination !== undefined && stopEverything(view, termination.deadline, plan, now);

  // 3. Say how it stands.
  const given: StatusInput = { input, view, termination, progress: stage, startedAt, stopped };
  const facts = factsOf(given);
  wakeForImagePullStatus(input, plan);

  // 4. Clear away what is left: of a deleted Pod everything, of a finished one all but its containers' records.
  const ending = termination?.reason === 'Deleted';
  const nothingLeft = stopped && ending && removeEverything(view, plan);
  if (stopped && !ending && observed.volumes !== 'gone') plan.act({ kind: 'unmountVolumes' });
  // An object with finalizers stays after the node's last word: deletionGracePeriodSeconds 0 tells that it was said.
  const spoken = input.removed || pod.metadata.deletionGracePeriodSeconds === 0;
  if (nothingLeft && !spoken) plan.act({ kind: 'finalizeDeletion' });

  return {
    actions: plan.actions,
    status: input.removed ? undefined : statusOf(given),
    memory: nextMemory(view, stage, facts.keys(), termination),
    events: [...facts].filter(([key]) => !memory.announced.has(key)).map(([, event]) => event),
    wakeAt: plan.wakeAt,
    done: nothingLeft && spoken,
  };
}

/**
 * Memory after a restart of the agent: all that matters is in the Pod and in the runtime. Facts that hold already
 * were announced by the agent before.
 */
export function rebuildMemory(input: Omit<Input, 'memory'>): Memory {
  const empty: Memory = { announced: new Set() };
  const view = viewOf({ ...input, memory: empty });
  const given: StatusInput = {
    input: { ...input, memory: empty },
    view,
    termination: undefined,
    progress: { stage: 'preparing' },
    startedAt: input.now,
    stopped: false,
  };
  const initialized = input.pod.status?.conditions?.some(
    ({ type, status }) => type === 'Initialized' && status === 'True',
  );
  const sandbox = view.sandbox?.ready === true ? view.sandbox.attempt : undefined;
  const sameSandbox = input.pod.status?.podIP !== undefined && view.sandbox?.ips[0] === input.pod.status.podIP;
  return {
    announced: new Set(factsOf(given).keys()),
    ...(initialized && sameSandbox && sandbox !== undefined ? { initializedInSandbox: sandbox } : {}),
  };
}

function nextMemory(
  view: PodView,
  stage: Progress,
  facts: Iterable<string>,
  termination: Memory['termination'],
): Memory {
  const initialized = view.initialized || stage.stage === 'running';
  return {
    announced: new Set(facts),
    ...(termination === undefined ? {} : { termination }),
    ...(initialized && view.sandbox !== undefined ? { initializedInSandbox: view.sandbox.attempt } : {}),
  };
}

/** A failed pull shows as ErrImagePull first and as ImagePullBackOff a moment later. */
function wakeForImagePullStatus({ observed, now }: Input, plan: Plan): void {
  for (const [key, failure] of Object.entries(observed.failures))
    if (key.startsWith('pullImage/') && now - failure.at < ERR_IMAGE_PULL_SHOWN_MILLIS)
      plan.wake(failure.at + ERR_IMAGE_PULL_SHOWN_MILLIS);
}
