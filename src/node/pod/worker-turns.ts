/** When the worker of a Pod decides on what comes in. */
import type { Pod } from '../../api/generated/types.ts';
import { nextOwnTurn } from '../../platform/work-in-turns.ts';

/** A decision on so many containers takes a few milliseconds. */
const MANY = 100;

/**
 * Returns a function that calls `wake`: at once, or for a Pod of many containers once in a turn of the event loop, however often
 * it is called. Thousands of actions may end in one turn, and a decision on thousands of containers takes a good part of a
 * second; no two such Pods have the same turn.
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
