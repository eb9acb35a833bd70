/** Determines the next step of one container, and when its image is looked up or pulled. Source: Images, "Image pull policy" (v1.33). */
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
    // In a new sandbox, an ephemeral container that ran before and an app container that has ended for good do not run again.
    if (kind === 'ephemeral' ? container.nextAttempt > 0 : kind === 'app' && hasEndedForGood(view, container)) return;
    yield* start(view, container, container.nextAttempt, latest?.backoffSeconds ?? 0);
  } else if (current.state === 'unknown') yield kill(current);
  else if (current.state === 'created') yield* start(view, container, current.attempt, current.backoffSeconds);
  else if (current.state === 'running') {
    const stop = view.stops[current.id];
    if (stop !== undefined) yield* endRun(view, current, stop.deadline);
  } else if (wantsRestart(view, container, current)) {
    const restart = restartAfter(current, view.stops);
    // The image of the next run is looked up only once the back-off has passed.
    if (restart.at > view.now) yield wake(restart.at);
    else yield* start(view, container, current.attempt + 1, restart.nextBackoffSeconds);
  }
  yield* collectOldRuns(container);
}

/** Removes the exited runs other than the newest two, which the status and `logs --previous` show. */
export function* collectOldRuns({ runs }: ContainerView): Rule {
  for (const { id, name, attempt, state } of runs.slice(2))
    if (state === 'exited') yield act({ kind: 'removeContainer', id, container: name, attempt });
}

function* start(view: PodView, container: ContainerView, attempt: number, backoffSeconds: number): Rule {
  yield* ensureImage(view, container, attempt);
  yield* startRun(view, container, attempt, backoffSeconds);
}

/** Starts the attempt if a sandbox exists, the image is present, the volumes are mounted and an ephemeral container's target runs. */
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

/** Returns the current run of the container that an ephemeral container targets; undefined if there is none. */
const targetOf = (view: PodView, { spec }: ContainerView): ContainerState | undefined =>
  view.byName.get((spec as EphemeralContainer).targetContainerName ?? '')?.current;

/** Returns the error of an ephemeral container whose target does not run, worded as by the kubelet; undefined if nothing is missing. */
export function missingTarget(view: PodView, container: ContainerView): string | undefined {
  const { targetContainerName: name } = container.spec as EphemeralContainer;
  if (container.kind !== 'ephemeral' || !name) return undefined;
  const target = targetOf(view, container);
  if (target === undefined) return `unable to find target container ${name}`;
  return target.state === 'running' ? undefined : `target container ${name} is not running`;
}

/** Returns the actions that pull the image of the attempt (`pull`) and look it up on the node (`check`). */
export const imageActions = ({ name, image, spec }: ContainerView, attempt: number) => {
  const what = { container: name, attempt, image };
  const mustExist = spec.imagePullPolicy === 'Never';
  return { pull: { kind: 'pullImage', ...what }, check: { kind: 'checkImage', ...what, mustExist } } as const;
};

/** Returns the result of the image lookup or pull for the attempt; undefined if there is none. */
export const imageFound = ({ imageState, image }: ContainerView, attempt: number) =>
  imageState?.attempt === attempt && imageState.image === image ? imageState : undefined;

/** Requests the image unless present: policy Always pulls it, IfNotPresent looks it up and pulls it if absent, Never only looks it up. */
export function* ensureImage(view: PodView, container: ContainerView, attempt: number, after?: RetryAt): Rule {
  const found = imageFound(container, attempt);
  if (found?.state === 'present') return;
  const { pull, check } = imageActions(container, attempt);
  if (container.spec.imagePullPolicy === 'Always') yield act(pull, after);
  // The image appeared without a pull, so the back-off no longer applies.
  else if (view.observed.appeared?.has(container.name) && !view.isUnderWay(actionKey(pull)))
    yield act(check, ({ at }) => at);
  else yield act(found?.state === 'absent' ? pull : check, after);
}

/** Pulls the images of defer containers once every app container has a run, unless prePullDeferImages is false. Retries failed pulls. */
export function* prePullDeferImages(view: PodView): Rule {
  if (view.spec.prePullDeferImages === false || !view.apps.every(({ current }) => current !== undefined)) return;
  for (const container of view.defers) yield* ensureImage(view, container, container.nextAttempt);
}

/** Looks up the image of the init container at `index` or, past the last one, those of the apps, if the pull policy is IfNotPresent. */
export function* lookForImages({ init, apps }: PodView, index: number): Rule {
  const next = init[index];
  for (const container of next === undefined ? apps : [next])
    if (container.spec.imagePullPolicy === 'IfNotPresent' && !imageFound(container, container.nextAttempt))
      yield act(imageActions(container, container.nextAttempt).check);
}
