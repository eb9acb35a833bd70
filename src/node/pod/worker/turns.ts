import type { Pod } from '../../../api/generated/types.ts';
import { nextOwnTurn } from '../../../platform/work-in-turns.ts';

/** A decision on a Pod with this many containers takes a few milliseconds. */
const MANY = 100;

/**
 * Returns a function that calls `wake` immediately, or, for a Pod with many containers, at most once per turn of the event loop. Thousands
 * of actions may end in one turn, and a decision on thousands of containers takes a considerable part of a second.
 */
export function inTurns(pod: () => Pod, wake: () => void): () => void {
  let isWaiting = false;
  return () => {
    if (containerCount(pod()) <= MANY) return wake();
    if (isWaiting) return;
    isWaiting = true;
    void nextOwnTurn().then(() => {
      isWaiting = false;
      wake();
    });
  };
}

const containerCount = ({ spec }: Pod): number =>
  [spec?.initContainers, spec?.containers, spec?.deferContainers, spec?.ephemeralContainers]
    .map((list) => list?.length ?? 0)
    .reduce((sum, length) => sum + length);
