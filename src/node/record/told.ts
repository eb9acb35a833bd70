/**
 * The steps of one Pod that its record has: only new ones are to be recorded. Of a long life the last ones are known, which are
 * those that a worker may tell of again.
 */
import type { Transition } from '../../lifecycle/types.ts';

export interface Told {
  /** The steps that were not given before, in their order; from now on they were. */
  fresh(transitions: readonly Transition[]): Transition[];
}

/** Some hundred containers have no more steps that hold at one time. */
const MAX_KEYS = 10_000;
/** Probes and failed actions: the record may say again of one that is older what its last step says. */
const MAX_SUBJECTS = 1000;

export function createTold(): Told {
  const keys = new Map<string, true>();
  const last = new Map<string, Said>();
  return {
    fresh: (transitions) =>
      transitions.filter((transition) => {
        const isKnown = keys.has(transition.key);
        putNewest(keys, transition.key, true, MAX_KEYS);
        if (isKnown) return false;
        const subject = subjectOf(transition);
        if (subject === undefined) return true;
        const { type, reason, message } = transition;
        const said = { type, reason, message };
        const repeated = isRepeated(said, last.get(subject));
        putNewest(last, subject, said, MAX_SUBJECTS);
        return !repeated;
      }),
  };
}

/** The oldest goes where there are more than `most`. */
function putNewest<Value>(map: Map<string, Value>, key: string, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  const [oldest = ''] = map.keys();
  map.delete(oldest);
}

/** The part of a key before its @ (see src/lifecycle/report.ts); undefined for keys without. */
const subjectOf = ({ key }: Transition): string | undefined =>
  key.includes('@') ? key.slice(0, key.lastIndexOf('@')) : undefined;

type Said = Pick<Transition, 'type' | 'reason' | 'message'>;

/** The step says of its subject what the last one said. */
const isRepeated = (next: Said, last: Said | undefined): boolean =>
  last !== undefined && last.type === next.type && last.reason === next.reason && last.message === next.message;
