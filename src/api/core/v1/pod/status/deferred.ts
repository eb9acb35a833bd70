/** Composes the message of the condition Deferred of a Pod. Pure. Source: the specification of defer containers (the texts). */

/** The messages of entries that did not complete. */
export const GIVEN_UP = 'given up';
export const SANDBOX_LOST = 'the sandbox was lost, and the app containers with it';
export const GRACE_PASSED = 'the grace period had passed';
export const STAGE_ENDED = 'the PreExit stage had ended';
export const NODE_HAD_NO_TIME = 'the node had no time';
export const NO_GRACE = 'the Pod was deleted with a grace period of 0';

const OUT_OF_TIME: readonly string[] = [GRACE_PASSED, STAGE_ENDED, NODE_HAD_NO_TIME, NO_GRACE];

interface NamedEnd {
  name: string;
  reason: string;
  message: string;
}

/** Returns the names of the ended entries that did not do their work. `lost`: those of `incomplete` that a lost sandbox cut off. */
export function undoneNames(ends: readonly NamedEnd[]): { lost: string[]; incomplete: string[]; failed: string[] } {
  // The message of an entry that completed is what its program wrote.
  const namesWhere = (matches: (end: NamedEnd) => boolean): string[] =>
    ends.filter((end) => end.reason !== 'Completed' && matches(end)).map(({ name }) => name);
  const lost = namesWhere(({ reason, message }) => reason === 'SandboxLost' || message === SANDBOX_LOST);
  const incomplete = [...lost, ...namesWhere(({ message }) => OUT_OF_TIME.includes(message))];
  const failed = namesWhere(
    ({ name, reason, message }) => !incomplete.includes(name) && (reason !== 'Skipped' || message === GIVEN_UP),
  );
  return { lost, incomplete, failed };
}

/** Returns which defer containers did not do their work, by their names; empty if both lists are empty. */
export const undoneEntries = (incomplete: readonly string[], failed: readonly string[]): string =>
  [
    ...(incomplete.length === 0 ? [] : [`defer containers that did not complete: [${incomplete.join(' ')}]`]),
    ...(failed.length === 0 ? [] : [`defer containers that failed: [${failed.join(' ')}]`]),
  ].join('; ');
