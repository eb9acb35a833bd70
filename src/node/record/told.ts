/** What is known to be told of one Pod: of what comes, only what is new is to be recorded. */
import { isRepeated, subjectOf } from '../../lifecycle/transitions.ts';
import type { Transition } from '../../lifecycle/types.ts';

export interface Told {
  /** Those that were not told yet, in the order given; from now on they are. */
  fresh(transitions: readonly Transition[]): Transition[];
}

export function createTold(): Told {
  const keys = new Set<string>();
  const last = new Map<string, Transition>();
  return {
    fresh: (transitions) =>
      transitions.filter((transition) => {
        if (keys.has(transition.key)) return false;
        keys.add(transition.key);
        const subject = subjectOf(transition);
        if (subject === undefined) return true;
        const repeated = isRepeated(transition, last.get(subject));
        last.set(subject, transition);
        return !repeated;
      }),
  };
}
