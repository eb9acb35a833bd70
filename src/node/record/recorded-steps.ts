/**
 * The steps of one Pod that its record has: only new ones are to be recorded. A new agent gives all steps that still hold once more,
 * however old they are; the results of a probe, of which a Pod may have one a second, hold until the next one.
 */
import type { Transition } from '../../lifecycle/types.ts';
import { putNewest } from '../put-newest.ts';

export interface Told {
  /** The steps that were not given before, in their order; from now on they were. */
  fresh(transitions: readonly Transition[]): Transition[];
}

/** Steps that may hold for the rest of the Pod's life: those of thousands of containers, and of weeks of restarts. */
const MAX_STEPS = 100_000;
/** Results of probes and actions that failed: they have a time in their keys. */
const MAX_RESULTS = 10_000;
/** Probes and failed actions: the record may say again of one that is older what its last step says. */
const MAX_SUBJECTS = 1000;

export function createTold(): Told {
  const steps = new Map<string, true>();
  const results = new Map<string, true>();
  const last = new Map<string, Said>();
  return {
    fresh: (transitions) =>
      transitions.filter((transition) => {
        const subject = subjectOf(transition);
        const keys = subject === undefined ? steps : results;
        const isKnown = keys.has(transition.key);
        putNewest(keys, transition.key, true, subject === undefined ? MAX_STEPS : MAX_RESULTS);
        if (isKnown) return false;
        if (subject === undefined) return true;
        const { type, reason, message } = transition;
        const said = { type, reason, message };
        const repeated = isRepeated(said, last.get(subject));
        putNewest(last, subject, said, MAX_SUBJECTS);
        return !repeated;
      }),
  };
}

/** The part of a key before its @ (see src/lifecycle/report.ts); undefined for keys without. */
const subjectOf = ({ key }: Transition): string | undefined =>
  key.includes('@') ? key.slice(0, key.lastIndexOf('@')) : undefined;

type Said = Pick<Transition, 'type' | 'reason' | 'message'>;

/** The step says of its subject what the last one said. */
const isRepeated = (next: Said, last: Said | undefined): boolean =>
  last !== undefined && last.type === next.type && last.reason === next.reason && last.message === next.message;
