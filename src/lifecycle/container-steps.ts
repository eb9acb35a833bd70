/** Source: Images, "Image pull policy" (v1.33). */
import type { EphemeralContainer } from '../api/generated/types.ts';
import { act, type RetryAt, type Rule, wake } from './effects.ts';
import { endRun, kill } from './hooks-and-stops.ts';
import { hasEndedForGood, restartAfter, wantsRestart } from './restart.ts';
import { actionKey, type ContainerState } from './types.ts';
import type { ContainerView, PodView } from './view.ts';

/** Advances a container of a Pod that is not terminating, or a sidecar while defer containers run. */
export function* advance(view: PodView, container: ContainerView): Rule {
  const { current, latest, kind } = container;
  if (current === undefined) {
    // In a new sandbox, these containers do not run again.
    if (kind === 'ephemeral' ? container.nextAttempt > 0 : kind === 'app' && hasEndedForGood(view, container)) return;
    yield* start(view, container, container.nextAttempt, latest?.backoffSeconds ?? 0);
  } else if (current.state === 'unknown') yield kill(current);
  else if (current.state === 'created') yield* start(view, container, current.attempt, current.backoffSeconds);
  else if (current.state === 'running') {
    const stop = view.stops[current.id];
    if (stop !== undefined) yield* endRun(view, current, stop.deadline);
  } else if (wantsRestart(view, container, current)) {
    const restart = restartAfter(current, view.stops);
    if (restart.at > view.now) yield wake(restart.at);
    else yield* start(view, container, current.attempt + 1, restart.nextBackoffSeconds);
  }
  yield* collectOldRuns(container);
}

/** Keeps the newest two runs, because the status and `logs --previous` show them. */
export function* collectOldRuns({ runs }: ContainerView): Rule {
  for (const { id, name, attempt, state } of runs.slice(2))
    if (state === 'exited') yield act({ kind: 'removeContainer', id, container: name, attempt });
}

function* start(view: PodView, container: ContainerView, attempt: number, backoffSeconds: number): Rule {
  yield* ensureImage(view, container, attempt);
  yield* startRun(view, container, attempt, backoffSeconds);
}

export function* startRun(view: PodView, container: ContainerView, attempt: number, backoffSeconds: number): Rule {
  const { sandbox, observed } = view;
  const found = imageFound(container, attempt);
  if (sandbox === undefined || found?.state !== 'present' || observed.volumes !== 'mounted') return;
  if (missingTarget(view, container) !== undefined) return;
  const { name, kind, image } = container;
  yield act({
    kind: 'startContainer',
    container: name,
    containerKind: kind,
    attempt,
    image,
    imageId: found.imageId,
    backoffSeconds,
    sandboxId: sandbox.id,
    targetId: targetOf(view, container)?.id,
  });
}

const targetOf = (view: PodView, { spec }: ContainerView): ContainerState | undefined =>
  view.byName.get((spec as EphemeralContainer).targetContainerName ?? '')?.current;

/** Returns the kubelet's error for an ephemeral container whose target does not run; otherwise undefined. */
export function missingTarget(view: PodView, container: ContainerView): string | undefined {
  const { targetContainerName: name } = container.spec as EphemeralContainer;
  if (container.kind !== 'ephemeral' || !name) return undefined;
  const target = targetOf(view, container);
  if (target === undefined) return `unable to find target container ${name}`;
  return target.state === 'running' ? undefined : `target container ${name} is not running`;
}

export const imageActions = ({ name, image, spec }: ContainerView, attempt: number) => {
  const what = { container: name, attempt, image };
  const mustExist = spec.imagePullPolicy === 'Never';
  return { pull: { kind: 'pullImage', ...what }, check: { kind: 'checkImage', ...what, mustExist } } as const;
};

export const imageFound = ({ imageState, image }: ContainerView, attempt: number) =>
  imageState?.attempt === attempt && imageState.image === image ? imageState : undefined;

export function* ensureImage(view: PodView, container: ContainerView, attempt: number, after?: RetryAt): Rule {
  const found = imageFound(container, attempt);
  if (found?.state === 'present') return;
  const { pull, check } = imageActions(container, attempt);
  if (container.spec.imagePullPolicy === 'Always') yield act(pull, after);
  // The image appeared without a pull, so the back-off no longer applies.
  else if (view.observed.appeared?.has(container.name) && !view.isUnderWay(actionKey(pull)))
    yield act(check, ({ at }) => at);
  // With the policy Never, an image that disappeared after the check is not pulled either.
  else yield act(found?.state === 'absent' && container.spec.imagePullPolicy !== 'Never' ? pull : check, after);
}

/** Waits until each app container has a run, so that these pulls do not delay the start of the Pod. */
export function* prePullDeferImages(view: PodView): Rule {
  if (view.spec.prePullDeferImages === false || !view.apps.every(({ current }) => current !== undefined)) return;
  for (const container of view.defers) yield* ensureImage(view, container, container.nextAttempt);
}

/** Looks up images early: that of the init container at `index` or, past the last init container, those of the apps. */
export function* lookForImages({ init, apps }: PodView, index: number): Rule {
  const next = init[index];
  for (const container of next === undefined ? apps : [next])
    if (container.spec.imagePullPolicy === 'IfNotPresent' && !imageFound(container, container.nextAttempt))
      yield act(imageActions(container, container.nextAttempt).check);
}
