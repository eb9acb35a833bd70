/** What the worker of a Pod knows of its images: what was found, how pulls go, and what came by itself. */
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod } from '../../api/generated/types.ts';
import { type Action, actionKey, type FailedAction, type ImageState, type Observed } from '../../lifecycle/types.ts';
import { storedName } from '../../runtime/images/references.ts';

export interface WorkerImages {
  observed(): Required<Pick<Observed, 'images' | 'pulls' | 'appeared'>>;
  /** What an action found. Returns the key of the pull that is not needed any more. */
  found(image: { container: string; state: ImageState }): string | undefined;
  /** How the pull of this key goes. */
  progress(key: string, progress: PullProgress): void;
  ended(action: Action, key: string): void;
  /** The runtime has the image of that name (storedName) now, undefined: any. Whether the Pod has waited for it. */
  appeared(pod: Pod, name: string | undefined, failures: readonly FailedAction[]): boolean;
}

/** Whether a volume of the Pod shows the image of that name (storedName), undefined: any. */
export const showsImage = ({ spec }: Pod, name: string | undefined): boolean =>
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
      // A pull of it has failed, or the look for one that may not be pulled.
      const failed = new Set(failures.flatMap(({ action }) => ('image' in action ? [action.image] : [])));
      for (const { image = '' } of containersOf(pod)) {
        const isMeant = name === undefined || storedName(image) === name;
        if (isMeant && failed.has(image)) appeared.add(image);
      }
      return appeared.size > 0;
    },
  };
}
