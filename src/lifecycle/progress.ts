/**
 * The life of a Pod that is not being ended: sandbox and volumes, then init containers strictly in order, then all app
 * containers together, and restarts as the policy says.
 *
 * Sources: Init Containers and Pod Lifecycle (v1.33); seeds 000 to 002 and 004.
 */
import type { Plan } from './plan.ts';
import { restartAfter, wantsRestart } from './restart.ts';
import type { Action } from './types.ts';
import { type ContainerView, isLive, type PodView, succeeded } from './view.ts';

/** Where the Pod stands; what remains is in the plan. */
export type Progress =
  | { stage: 'preparing' }
  /** `index`: the init container whose turn it is. */
  | { stage: 'initializing'; index: number }
  | { stage: 'running' }
  /** Nothing runs and nothing will: the Pod is over. */
  | { stage: 'finished'; failedInit?: string };

export function progress(view: PodView, plan: Plan, now: number): Progress {
  const lost = view.sandbox !== undefined && !view.sandbox.ready;
  if ((view.sandbox === undefined || lost) && finishedForGood(view)) return finishedForGood(view) as Progress;
  if (view.observed.volumes !== 'mounted') plan.act({ kind: 'mountVolumes' });
  if (lost || view.sandbox === undefined) {
    replaceSandbox(view, plan);
    return { stage: 'preparing' };
  }

  // The sandbox before the current one keeps the logs of the runs that it lost.
  const { attempt } = view.sandbox;
  for (const old of view.observed.sandboxes)
    if (old.attempt < attempt - 1) plan.act({ kind: 'removeSandbox', id: old.id });

  const turn = initTurn(view);
  if (turn === 'failed') return { stage: 'finished', failedInit: view.init.find(hasFailed)?.spec.name ?? '' };
  restartSidecars(view, turn, plan, now);
  if (turn !== 'done') {
    const container = view.init[turn] as ContainerView;
    advance(view, container, plan, now);
    if (isLive(container.current)) lookForImages(view, turn + 1, plan);
    return { stage: 'initializing', index: turn };
  }
  for (const container of view.apps) advance(view, container, plan, now);
  return finishedForGood(view) ?? { stage: 'running' };
}

/** The index of the init container whose turn it is. Each must succeed (a sidecar: start) before the next. */
export function initTurn(view: PodView): number | 'done' | 'failed' {
  if (view.initialized) return 'done';
  for (const [index, container] of view.init.entries()) {
    if (container.sidecar ? container.current?.state === 'running' : succeeded(container.current)) continue;
    if (view.restartPolicy === 'Never' && hasFailed(container)) return 'failed';
    return index;
  }
  return 'done';
}

const hasFailed = (container: ContainerView): boolean =>
  !container.sidecar && container.latest?.state === 'exited' && container.latest.exitCode !== 0;

/** No container of the Pod runs and the restart policy starts none again. Sidecars do not count. */
export function finishedForGood(view: PodView): Progress | undefined {
  if (view.restartPolicy === 'Never') {
    const failed = view.init.find(hasFailed);
    if (failed !== undefined) return { stage: 'finished', failedInit: failed.spec.name };
  }
  const over = view.apps.every(
    ({ latest }, index) =>
      latest?.state === 'exited' && !wantsRestart(view.apps[index] as ContainerView, view.restartPolicy, latest),
  );
  return over ? { stage: 'finished' } : undefined;
}

/** A Pod whose sandbox is lost starts over in a new one: what is left of the old one is killed first. */
function replaceSandbox(view: PodView, plan: Plan): void {
  const remains = view.observed.containers.filter((run) => isLive(run) && run.state !== 'created');
  for (const run of remains) plan.act({ kind: 'stopContainer', id: run.id, deadline: run.createdAt });
  if (remains.length > 0) return;
  plan.act({ kind: 'createSandbox', attempt: (view.sandbox?.attempt ?? -1) + 1 });
}

function restartSidecars(view: PodView, turn: number | 'done', plan: Plan, now: number): void {
  const started = turn === 'done' ? view.init : view.init.slice(0, turn);
  for (const container of started) if (container.sidecar) advance(view, container, plan, now);
}

/** Takes one container a step further: image, start, restart. */
function advance(view: PodView, container: ContainerView, plan: Plan, now: number): void {
  const { current, latest } = container;
  if (current === undefined) {
    // A run of an earlier sandbox: an app container that had ended for good stays ended.
    if (container.kind === 'app' && latest?.state === 'exited' && !wantsRestart(container, view.restartPolicy, latest))
      return;
    start(view, container, container.nextAttempt, latest?.backoffSeconds ?? 0, plan);
  } else if (current.state === 'unknown') {
    plan.act({ kind: 'stopContainer', id: current.id, deadline: current.createdAt });
  } else if (current.state === 'created') {
    start(view, container, current.attempt, current.backoffSeconds, plan);
  } else if (current.state === 'exited' && wantsRestart(container, view.restartPolicy, current)) {
    const restart = restartAfter(current);
    // The image of the next run is made sure of when its time has come, not before.
    if (restart.at > now) plan.wake(restart.at);
    else start(view, container, current.attempt + 1, restart.nextBackoffSeconds, plan);
  }
  collectOldRuns(container, plan);
}

/** The newest run and the one before it are kept, for status and `logs --previous`. */
function collectOldRuns(container: ContainerView, plan: Plan): void {
  for (const run of container.runs.slice(2))
    if (run.state === 'exited') plan.act({ kind: 'removeContainer', id: run.id });
}

function start(view: PodView, container: ContainerView, attempt: number, backoffSeconds: number, plan: Plan): void {
  const image = ensureImage(view, container, attempt, plan);
  if (image === undefined || view.sandbox === undefined || view.observed.volumes !== 'mounted') return;
  plan.act({
    kind: 'startContainer',
    container: container.spec.name,
    containerKind: container.kind,
    attempt,
    sandboxId: view.sandbox.id,
    imageId: image,
    backoffSeconds,
  });
}

/**
 * The image's ID once it is there. Source: Images, "Image pull policy": Always asks the registry before each start,
 * IfNotPresent when the image is missing, Never not at all.
 */
export function ensureImage(view: PodView, container: ContainerView, attempt: number, plan: Plan): string | undefined {
  const { name, image = '', imagePullPolicy } = container.spec;
  const known = view.observed.images[name];
  const state = known?.attempt === attempt ? known : undefined;
  if (state?.state === 'present') return state.imageId;
  const pull: Action = { kind: 'pullImage', container: name, attempt, image };
  if (imagePullPolicy === 'Always' || state?.state === 'absent') plan.act(pull);
  else plan.act({ kind: 'checkImage', container: name, attempt, image, mustExist: imagePullPolicy === 'Never' });
  return undefined;
}

/**
 * Looks for the images of the init container at the index, or of the apps after the last one, ahead of their turn: it costs nothing
 * while the sandbox is made or the container before runs. Pulls wait for the turn.
 */
export function lookForImages(view: PodView, index: number, plan: Plan): void {
  const next = view.init[index];
  for (const container of next === undefined ? view.apps : [next]) {
    const { name, image = '', imagePullPolicy } = container.spec;
    const attempt = container.nextAttempt;
    if (imagePullPolicy === 'IfNotPresent' && view.observed.images[name]?.attempt !== attempt)
      plan.act({ kind: 'checkImage', container: name, attempt, image, mustExist: false });
  }
}
