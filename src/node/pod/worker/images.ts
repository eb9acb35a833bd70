/** Tracks the images of a Pod for its worker: their states, the progress of pulls, and images that appeared without a pull. */
import type { PullProgress } from '../../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod } from '../../../api/generated/types.ts';
import type { Action, FailedAction, ImageState, Observed } from '../../../lifecycle/types.ts';
import { storedName } from '../../../runtime/images/references.ts';

export interface WorkerImages {
  observed(): Required<Pick<Observed, 'images' | 'pulls' | 'appeared'>>;
  /**
   * Stores the image state that an action found. If the image is present, returns the action that pulls it, since earlier
   * failures of the pull are obsolete; otherwise undefined.
   */
  found(image: { container: string; state: ImageState }): Action | undefined;
  /** Stores the progress of the pull with this key. */
  progress(key: string, progress: PullProgress): void;
  ended(action: Action, key: string): void;
  /**
   * Records that an image with this name (from storedName()) has appeared in the runtime; undefined: any image may have appeared.
   * `failures`: the Pod's failed actions. `underWay`: its actions that have not ended: a pull that began before may still fail.
   * Returns whether a container of the Pod waits for an image that has appeared. Each of several containers with the image looks for it.
   */
  appeared(name: string | undefined, failures: readonly FailedAction[], underWay: readonly Action[]): boolean;
}

/** Whether a volume of the Pod mounts the image with this name (from storedName()); undefined: any image. */
export const mountsImage = ({ spec }: Pod, name: string | undefined): boolean =>
  (spec?.volumes ?? []).some(
    ({ image }) => image !== undefined && (name === undefined || storedName(image.reference ?? '') === name),
  );

export function createWorkerImages(): WorkerImages {
  const images: Record<string, ImageState> = {};
  const pulls: Record<string, PullProgress> = {};
  /** The names of containers. */
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
