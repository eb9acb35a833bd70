/** When the image of a container is looked up or pulled. Source: Images, "Image pull policy" (v1.33). */
import { act, type RetryAt, type Rule } from './effects.ts';
import { actionKey } from './types.ts';
import type { ContainerView, PodView } from './view.ts';

/** The actions that pull the image of the attempt, and that look it up on the node. */
export const imageActions = ({ name, image, spec }: ContainerView, attempt: number) => {
  const what = { container: name, attempt, image };
  const mustExist = spec.imagePullPolicy === 'Never';
  return { pull: { kind: 'pullImage', ...what }, check: { kind: 'checkImage', ...what, mustExist } } as const;
};

/** The result of the image lookup or pull for the attempt; undefined if there is none. */
export const imageFound = ({ imageState, image }: ContainerView, attempt: number) =>
  imageState?.attempt === attempt && imageState.image === image ? imageState : undefined;

/** Gets the image. Policy Always contacts the registry before each start, IfNotPresent if the image is absent, Never not at all. */
export function* ensureImage(view: PodView, container: ContainerView, attempt: number, after?: RetryAt): Rule {
  const found = imageFound(container, attempt);
  if (found?.state === 'present') return;
  const { pull, check } = imageActions(container, attempt);
  if (container.spec.imagePullPolicy === 'Always') yield act(pull, after);
  // The image appeared without a pull, so the back-off no longer applies.
  else if (view.observed.appeared?.has(container.image) && !view.isUnderWay(actionKey(pull)))
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
