import type { PullProgress } from '../../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod } from '../../../api/generated/types.ts';
import type { Action, FailedAction, ImageState, Observed } from '../../../lifecycle/types.ts';
import { storedName } from '../../../runtime/images/references.ts';

export interface WorkerImages {
  observed(): Required<Pick<Observed, 'images' | 'pulls' | 'appeared'>>;
  /** If the image is present, returns the action that would pull the image, since its earlier failures are obsolete. */
  found(image: { container: string; state: ImageState }): Action | undefined;
  progress(key: string, progress: PullProgress): void;
  ended(action: Action, key: string): void;
  /**
   * `name`: from storedName(); undefined: any image may have appeared. `underWay`: the actions that have not ended, since a pull that began
   * before may still fail. Returns whether a container of the Pod waits for an image that has appeared.
   */
  appeared(name: string | undefined, failures: readonly FailedAction[], underWay: readonly Action[]): boolean;
}

/** `name`: from storedName(); undefined: any image. */
export const mountsImage = ({ spec }: Pod, name: string | undefined): boolean =>
  (spec?.volumes ?? []).some(
    ({ image }) => image !== undefined && (name === undefined || storedName(image.reference ?? '') === name),
  );

export function createWorkerImages(): WorkerImages {
  const images: Record<string, ImageState> = {};
  const pulls: Record<string, PullProgress> = {};
  /** The names of the containers whose image has appeared and has not been checked since. */
  const appeared = new Set<string>();
  return {
    observed: () => ({ images, pulls, appeared }),
    found({ container, state }) {
      images[container] = state;
      const { attempt, image } = state;
      if (state.state === 'present') appeared.delete(container);
      return state.state === 'present' ? { kind: 'pullImage', container, attempt, image } : undefined;
    },
    progress(key, progress) {
      pulls[key] = progress;
    },
    ended(action, key) {
      delete pulls[key];
      if (action.kind === 'checkImage') appeared.delete(action.container);
    },
    appeared(name, failures, underWay) {
      // The actions may be, for example, pulls, or checks with the pull policy Never.
      for (const action of [...failures.map((failure) => failure.action), ...underWay])
        if ('image' in action && (name === undefined || storedName(action.image) === name))
          appeared.add(action.container);
      return appeared.size > 0;
    },
  };
}
