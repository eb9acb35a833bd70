/** Composes the message of the condition Deferred of a Pod. Pure. Source: the specification of defer containers (the texts). */

/** Returns which defer containers did not do their work, by their names; empty if both lists are empty. */
export const undoneEntries = (incomplete: readonly string[], failed: readonly string[]): string =>
  [
    ...(incomplete.length === 0 ? [] : [`defer containers that did not complete: [${incomplete.join(' ')}]`]),
    ...(failed.length === 0 ? [] : [`defer containers that failed: [${failed.join(' ')}]`]),
  ].join('; ');
