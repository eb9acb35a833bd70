/** A bounded number of things at a time; who comes later waits its turn. */

export interface Slots {
  /** Runs the work when a slot is free; rejects without running it where `signal` has aborted by then. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export function createSlots(count: number): Slots {
  const waiting: (() => void)[] = [];
  let free = count;
  return {
    async run(work, signal) {
      if (free > 0) free--;
      // The slot is handed over: it is never free in between.
      else await new Promise<void>((resolve) => void waiting.push(resolve));
      try {
        signal.throwIfAborted();
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) free++;
        else next();
      }
    },
  };
}
