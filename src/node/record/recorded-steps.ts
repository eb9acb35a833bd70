/**
 * A new agent reports again all steps that are still valid, however old they are. In contrast, a probe result is valid only until the
 * probe's next result, which may come a second later; therefore fewer results are remembered.
 */
import type { Transition } from '../../lifecycle/types.ts';
import { putNewest } from '../bounded-map.ts';

export interface RecordedSteps {
  /** Returns the steps that were not returned before. Omits a result that equals the last one of the same subject. */
  fresh(transitions: readonly Transition[]): Transition[];
}

/** Suffices for thousands of containers and for weeks of restarts. */
const MAX_STEPS = 100_000;
/** Results are steps whose keys end with an @ and a time. */
const MAX_RESULTS = 10_000;
/**
 * The maximum number of subjects (probes and failed actions) whose last result is remembered. For further subjects, the record may repeat a
 * result.
 */
const MAX_SUBJECTS = 1000;

export function createRecordedSteps(): RecordedSteps {
  const steps = new Map<string, true>();
  const results = new Map<string, true>();
  const last = new Map<string, Result>();
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
        const result = { type, reason, message };
        const repeated = isRepeated(result, last.get(subject));
        putNewest(last, subject, result, MAX_SUBJECTS);
        return !repeated;
      }),
  };
}

/** Returns the probe or action of a result; undefined for other steps. Source of the keys: src/lifecycle/report.ts. */
const subjectOf = ({ key }: Transition): string | undefined => /^(.*)@\d+$/s.exec(key)?.[1];

type Result = Pick<Transition, 'type' | 'reason' | 'message'>;

const isRepeated = (next: Result, last: Result | undefined): boolean =>
  last !== undefined && last.type === next.type && last.reason === next.reason && last.message === next.message;
