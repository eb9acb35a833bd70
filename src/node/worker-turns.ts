/** When the worker of a Pod decides on what comes in. */
import type { Pod } from '../api/generated/types.ts';

/** A decision on so many containers takes a few milliseconds. */
const MANY = 100;

/**
 * `wake`, called at once; for a Pod of many containers once in a turn of the event loop, however much comes in: thousands of
 * actions may end in one turn, and a decision on thousands of containers takes a good part of a second.
 */
export function inTurns(pod: () => Pod, wake: () => void): () => void {
  let isWaiting = false;
  return () => {
    if (containerCount(pod()) <= MANY) return wake();
    if (isWaiting) return;
    isWaiting = true;
    setImmediate(() => {
      isWaiting = false;
      wake();
    });
  };
}

const containerCount = ({ spec }: Pod): number =>
  [spec?.initContainers, spec?.containers, spec?.deferContainers, spec?.ephemeralContainers]
    .map((list) => list?.length ?? 0)
    .reduce((sum, length) => sum + length);
