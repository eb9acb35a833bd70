/** Tracks the images of a Pod for its worker: their states, the progress of pulls, and images that appeared without a pull. */
import { containersOf } from '../../../api/core/v1/pod/containers.ts';
import type { PullProgress } from '../../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod } from '../../../api/generated/types.ts';
import { type Action, actionKey, type FailedAction, type ImageState, type Observed } from '../../../lifecycle/types.ts';
import { storedName } from '../../../runtime/images/references.ts';

export interface WorkerImages {
  observed(): Required<Pick<Observed, 'images' | 'pulls' | 'appeared'>>;
  /** Stores the image state that an action found. Returns the key of the pull that is no longer needed, if any. */
  found(image: { container: string; state: ImageState }): string | undefined;
  /** Stores the progress of the pull with this key. */
  progress(key: string, progress: PullProgress): void;
  ended(action: Action, key: string): void;
  /**
   * The runtime now has an image of that name (storedName); undefined: it may have any image. Returns whether the Pod was waiting
   * for an image that appeared.
   */
  appeared(pod: Pod, name: string | undefined, failures: readonly FailedAction[]): boolean;
}

/** Whether a volume of the Pod mounts the image of that name (storedName); undefined: any image. */
export const mountsImage = ({ spec }: Pod, name: string | undefined): boolean =>
  (spec?.volumes ?? []).some(
    ({ image }) => image !== undefined && (name === undefined || storedName(image.reference ?? '') === name),
  );

export function createWorkerImages(): WorkerImages {
  const images: Record<string, ImageState> = {};
  const pulls: Record<string, PullProgress> = {};
  const appeared = new Set<string>();
  return {
    observed: () => ({ images, pulls, appeared }),
    found({ container, state }) {
      images[container] = state;
      const { attempt, image } = state;
      return state.state === 'present' ? actionKey({ kind: 'pullImage', container, attempt, image }) : undefined;
    },
    progress(key, progress) {
      pulls[key] = progress;
    },
    ended(action, key) {
      delete pulls[key];
      if (action.kind === 'checkImage') appeared.delete(action.image);
    },
    appeared(pod, name, failures) {
      // The images whose pull failed, or whose check failed because the pull policy is Never.
      const failed = new Set(failures.flatMap(({ action }) => ('image' in action ? [action.image] : [])));
      for (const { image = '' } of containersOf(pod)) {
        const isMeant = name === undefined || storedName(image) === name;
        if (isMeant && failed.has(image)) appeared.add(image);
      }
      return appeared.size > 0;
    },
  };
}
