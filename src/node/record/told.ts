/** The steps of one Pod that its record has: only new ones are to be recorded. */
import type { Transition } from '../../lifecycle/types.ts';

export interface Told {
  /** The steps that were not given before, in their order; from now on they were. */
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

/** The part of a key before its @ (see src/lifecycle/report.ts); undefined for keys without. */
const subjectOf = ({ key }: Transition): string | undefined =>
  key.includes('@') ? key.slice(0, key.lastIndexOf('@')) : undefined;

/** The step says of its subject what the last one said. */
const isRepeated = (next: Transition, last: Transition | undefined): boolean =>
  last !== undefined && last.type === next.type && last.reason === next.reason && last.message === next.message;
