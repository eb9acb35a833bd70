/**
 * Lets one piece of work run in each turn of the event loop, so that the rest of the process waits for one piece at most. The owners of the
 * work take turns, however many pieces each of them has.
 */

/** Resolves in a turn of the event loop in which no other call resolves. The promises of one owner resolve in the order of the calls. */
export type FairTurns = (owner: string) => Promise<void>;

export function createFairTurns(): FairTurns {
  /** The owners are in the order of their turns. */
  const lines = new Map<string, (() => void)[]>();
  const wakeOne = (): void => {
    const [[owner, line] = ['', []]] = lines;
    const wake = line.shift();
    lines.delete(owner);
    if (line.length > 0) lines.set(owner, line);
    if (lines.size > 0) setImmediate(wakeOne);
    wake?.();
  };
  return (owner) =>
    new Promise((resolve) => {
      const line = lines.get(owner);
      if (line !== undefined) {
        line.push(resolve);
        return;
      }
      lines.set(owner, [resolve]);
      if (lines.size === 1) setImmediate(wakeOne);
    });
}

/** Returns a function that returns true for each call beyond the first `limit` calls with the same key in one turn of the event loop. */
export function limitPerTurn(limit: number): (key: string) => boolean {
  const counts = new Map<string, number>();
  return (key) => {
    if (counts.size === 0) setImmediate(() => counts.clear());
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count > limit;
  };
}
