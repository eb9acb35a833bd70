/** How long one piece of work, such as a request, may occupy the event loop before it must let other work run. */
const TURN_MILLIS = 20;

/** Resolves with whether the call waited. Other work may have run during the wait. */
export type BetweenSteps = () => Promise<boolean>;

const waiting: (() => void)[] = [];

/** Resolves in a turn of the event loop in which no other call of this function resolves. Promises resolve in the order of the calls. */
export function nextOwnTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(wakeOne);
  });
}

function wakeOne(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(wakeOne);
}

/** Returns a function that long work awaits between its steps. Every 20 ms, the function waits for nextOwnTurn(). */
export function workInTurns(): BetweenSteps {
  let began = performance.now();
  const wait = async (): Promise<boolean> => {
    await nextOwnTurn();
    began = performance.now();
    return true;
  };
  return () => (performance.now() - began < TURN_MILLIS ? NOT_WAITED : wait());
}

/** Most calls need not wait. They share this promise. */
const NOT_WAITED = Promise.resolve(false);

/** Callers get the lock in the order of their calls. */
export interface OneAtATime {
  /** Resolves when the caller has the lock, with a function that releases it. Call the function exactly once, even after an error. */
  enter(): Promise<() => void>;
  isTaken(): boolean;
}

export function oneAtATime(): OneAtATime {
  let entered = 0;
  let last = Promise.resolve();
  return {
    async enter() {
      const before = last;
      let leave = (): void => {};
      last = new Promise((resolve) => {
        leave = resolve;
      });
      entered++;
      await before;
      return () => {
        entered--;
        leave();
      };
    },
    isTaken: () => entered > 0,
  };
}

/** See longWork(). */
export interface LongWork {
  /** Waits like begin() if at least 20 ms have passed since the last wait, or since longWork(). */
  betweenSteps: BetweenSteps;
  /** Waits for the slot, unless this work has it, and for a turn of the event loop. */
  begin(): Promise<void>;
  /** Returns whether betweenSteps() would wait for other long work now. */
  waitsForOthers(): boolean;
  /** Settles like the promise. Releases the slot during the wait, so that other long work can continue. */
  outside<T>(waiting: Promise<T>): Promise<T>;
  /** Releases the slot. Must be called, even after an error or if the slot was never taken. */
  end(): void;
}

const slot = oneAtATime();

/**
 * Limits work that may take long and use much memory: after its first 20 ms, such work needs the only slot. Work that has the slot must not
 * wait for other long work, which could never get the slot.
 */
export function longWork(): LongWork {
  let began = performance.now();
  let leave: (() => void) | undefined;
  const isTurnOver = (): boolean => performance.now() - began >= TURN_MILLIS;
  const begin = async (): Promise<void> => {
    leave ??= await slot.enter();
    await nextOwnTurn();
    began = performance.now();
  };
  const end = (): void => {
    leave?.();
    leave = undefined;
  };
  return {
    begin,
    betweenSteps: () => (isTurnOver() ? begin().then(() => true) : NOT_WAITED),
    waitsForOthers: () => leave === undefined && slot.isTaken() && isTurnOver(),
    async outside(waiting) {
      end();
      try {
        return await waiting;
      } finally {
        began = performance.now();
      }
    },
    end,
  };
}

/** Runs all steps in this turn of the event loop, and returns the value that the iterator returns. */
export function runAtOnce<T>(steps: Iterator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Awaits `betweenSteps` after each step. Resolves with the value that the iterator returns. */
export async function runInTurns<T>(steps: Iterator<void, T>, betweenSteps: BetweenSteps): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await betweenSteps();
  }
}

/**
 * For work that consists of many small pieces, several of which may start in one turn of the event loop. Before each piece, call the
 * returned function: it returns whether 20 ms have passed since its first call in the current turn.
 */
export function turnClock(): () => boolean {
  let began: number | undefined;
  return () => {
    if (began !== undefined) return performance.now() - began >= TURN_MILLIS;
    began = performance.now();
    setImmediate(() => {
      began = undefined;
    });
    return false;
  };
}

/** Returns a function that runs `task`, never twice at the same time. Calls before the start of a run share this run. */
export function sharedRuns(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= running.then(() => {
      const run = task();
      running = run.catch(() => undefined);
      next = undefined;
      return run;
    });
    return next;
  };
}
