/**
 * The life of a Pod that is not being ended: sandbox and volumes, then init containers strictly in order, then all app
 * containers together, and restarts as the policy says.
 *
 * Sources: Init Containers and Pod Lifecycle (v1.33); seeds 000 to 002 and 004.
 */
import type { EphemeralContainer } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';
import { endRun } from './hooks.ts';
import { replaceSandbox } from './lost-sandbox.ts';
import type { Plan } from './plan.ts';
import { isStarted } from './probes.ts';
import { restartAfter, wantsRestart } from './restart.ts';
import type { Turn } from './turn.ts';
import { type Action, actionKey, type ContainerState, type Failure } from './types.ts';
import { type ContainerView, isLive, type PodView, succeeded } from './view.ts';

/** Where the Pod stands; what remains is in the plan. */
export type Progress =
  | { stage: 'preparing' }
  /** `index`: the init container whose turn it is. */
  | { stage: 'initializing'; index: number }
  | { stage: 'running' }
  /** Nothing runs and nothing will: the Pod is over. */
  | { stage: 'finished'; failedInit?: string };

export function progress(turn: Turn): Progress {
  const { view, plan } = turn;
  const lost = view.sandbox !== undefined && !view.sandbox.ready;
  const over = finishedForGood(turn);
  if ((view.sandbox === undefined || lost) && over !== undefined) return over;
  if (view.observed.volumes !== 'mounted') plan.act({ kind: 'mountVolumes' });
  if (lost || view.sandbox === undefined) {
    replaceSandbox(turn);
    return { stage: 'preparing' };
  }

  // The sandbox before the current one keeps the logs of the runs that it lost.
  const { attempt } = view.sandbox;
  for (const old of view.observed.sandboxes)
    if (old.attempt < attempt - 1) plan.act({ kind: 'removeSandbox', id: old.id });

  const next = initTurn(turn);
  if (next === 'failed') return over ?? { stage: 'finished' };
  for (const container of next === 'done' ? view.init : view.init.slice(0, next))
    if (container.sidecar) advance(turn, container);
  for (const container of view.ephemeral) advance(turn, container);
  if (next !== 'done') {
    const container = view.init[next] as ContainerView;
    advance(turn, container);
    if (isLive(container.current)) lookForImages(view, next + 1, plan);
    return { stage: 'initializing', index: next };
  }
  for (const container of view.apps) advance(turn, container);
  if (over === undefined) prePullDeferImages(view, plan);
  return over ?? { stage: 'running' };
}

/**
 * The index of the init container whose turn it is. Each must succeed (a sidecar: have started) before the next: those before one
 * that has a run have had their turn, whatever the runtime still knows of them. Source: the kubelet of v1.33 (behaviour).
 */
export function initTurn(turn: Turn): number | 'done' | 'failed' {
  const { view } = turn;
  if (view.initialized) return 'done';
  const reached = view.init.findLastIndex(({ current }) => current !== undefined);
  for (const [index, container] of view.init.entries()) {
    if (index < reached) continue;
    if (container.sidecar ? isStarted(turn, container) : succeeded(container.current)) continue;
    if (view.restartPolicy === 'Never' && hasFailed(container)) return 'failed';
    return index;
  }
  return 'done';
}

const hasFailed = (container: ContainerView): boolean =>
  !container.sidecar && container.latest?.state === 'exited' && container.latest.exitCode !== 0;

/** No container of the Pod runs and the restart policy starts none again. Sidecars do not count. */
export function finishedForGood({ view, stops }: Pick<Turn, 'view' | 'stops'>): Progress | undefined {
  if (view.restartPolicy === 'Never') {
    const failed = view.init.find(hasFailed);
    if (failed !== undefined) return { stage: 'finished', failedInit: failed.spec.name };
  }
  const over = view.apps.every(
    (container) =>
      container.latest?.state === 'exited' && !wantsRestart(container, view.restartPolicy, container.latest, stops),
  );
  return over ? { stage: 'finished' } : undefined;
}

/** Takes one container a step further: image, start, the end of a run that is to be replaced, restart. */
export function advance(turn: Turn, container: ContainerView): void {
  const { view, plan, now, stops } = turn;
  const { current, latest } = container;
  if (current === undefined) {
    // A run of an earlier sandbox: what had ended for good stays ended.
    const ended = latest?.state === 'exited' && !wantsRestart(container, view.restartPolicy, latest, stops);
    if (container.kind === 'ephemeral' ? container.nextAttempt > 0 : container.kind === 'app' && ended) return;
    start(turn, container, container.nextAttempt, latest?.backoffSeconds ?? 0);
  } else if (current.state === 'unknown') {
    plan.act({ kind: 'stopContainer', id: current.id, deadline: current.createdAt });
  } else if (current.state === 'created') {
    start(turn, container, current.attempt, current.backoffSeconds);
  } else if (current.state === 'running') {
    const stop = stops[current.id];
    if (stop !== undefined) endRun(turn, current, container, stop.deadline);
  } else if (wantsRestart(container, view.restartPolicy, current, stops)) {
    const restart = restartAfter(current, stops);
    // The image of the next run is made sure of when its time has come, not before.
    if (restart.at > now) plan.wake(restart.at);
    else start(turn, container, current.attempt + 1, restart.nextBackoffSeconds);
  }
  collectOldRuns(container, plan);
}

/** The newest run and the one before it are kept, for status and `logs --previous`. */
export function collectOldRuns(container: ContainerView, plan: Plan): void {
  for (const run of container.runs.slice(2))
    if (run.state === 'exited')
      plan.act({ kind: 'removeContainer', id: run.id, container: run.name, attempt: run.attempt });
}

/** Once image and volumes are there. */
export function start(turn: Turn, container: ContainerView, attempt: number, backoffSeconds: number): void {
  const { view, plan } = turn;
  const imageId = ensureImage(view, container, attempt, plan);
  if (imageId === undefined || view.sandbox === undefined || view.observed.volumes !== 'mounted') return;
  const { name } = container.spec;
  if (missingTarget(view, container) !== undefined) return;
  const target = targetOf(view, container);
  plan.act({
    kind: 'startContainer',
    container: name,
    containerKind: container.kind,
    attempt,
    sandboxId: view.sandbox.id,
    image: container.spec.image ?? '',
    imageId,
    backoffSeconds,
    ...(target === undefined ? {} : { targetId: target.id }),
  });
}

/** The newest run of the container that an ephemeral container targets. */
function targetOf(view: PodView, { spec }: ContainerView): ContainerState | undefined {
  const name = (spec as EphemeralContainer).targetContainerName;
  return view.all.find((each) => each.spec.name === name)?.current;
}

/** Why an ephemeral container cannot start: its target does not run. In the kubelet's words, as far as it has any. */
export function missingTarget(view: PodView, container: ContainerView): string | undefined {
  const name = (container.spec as EphemeralContainer).targetContainerName;
  if (container.kind !== 'ephemeral' || name === undefined || name === '') return undefined;
  const target = targetOf(view, container);
  if (target?.state === 'running') return undefined;
  return target === undefined ? `unable to find target container ${name}` : `target container ${name} is not running`;
}

/**
 * The image's ID once it is there. Source: Images, "Image pull policy": Always asks the registry before each start,
 * IfNotPresent when the image is missing, Never not at all.
 */
export function ensureImage(
  view: PodView,
  container: ContainerView,
  attempt: number,
  plan: Plan,
  dueAfter?: (failure: Failure) => Millis,
): string | undefined {
  const { name, image = '', imagePullPolicy } = container.spec;
  const known = view.observed.images[name];
  const state = known?.attempt === attempt && known.image === image ? known : undefined;
  if (state?.state === 'present') return state.imageId;
  const pull: Action = { kind: 'pullImage', container: name, attempt, image };
  const check: Action = { kind: 'checkImage', container: name, attempt, image, mustExist: imagePullPolicy === 'Never' };
  if (imagePullPolicy === 'Always') plan.act(pull, dueAfter);
  // It came by itself, while a pull was waited for or it was not to be pulled at all: no back-off holds any more.
  else if (view.observed.appeared?.has(image) && !plan.pending(actionKey(pull))) plan.act(check, ({ at }) => at);
  else plan.act(state?.state === 'absent' ? pull : check, dueAfter);
  return undefined;
}

/** Once every app container has been started. What fails is told, and nothing else. */
function prePullDeferImages(view: PodView, plan: Plan): void {
  if (view.spec.prePullDeferImages === false || !view.apps.every(({ current }) => current !== undefined)) return;
  for (const container of view.defers) ensureImage(view, container, container.nextAttempt, plan);
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
    const known = view.observed.images[name];
    if (imagePullPolicy === 'IfNotPresent' && (known?.attempt !== attempt || known.image !== image))
      plan.act({ kind: 'checkImage', container: name, attempt, image, mustExist: false });
  }
}
