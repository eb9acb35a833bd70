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

/**
 * Returns a function that long work awaits between its steps. If at least 20 ms have passed since its last wait, or since its creation, the
 * function waits for nextOwnTurn(). Otherwise, the work continues immediately.
 */
export function workInTurns(): BetweenSteps {
  let began = performance.now();
  const wait = async (): Promise<boolean> => {
    await nextOwnTurn();
    began = performance.now();
    return true;
  };
  return () => (performance.now() - began < TURN_MILLIS ? NOT_WAITED : wait());
}

/** The result of each call that need not wait. One promise is enough for all these calls, which are most of the calls. */
const NOT_WAITED = Promise.resolve(false);

/** A fair lock: one caller at a time has the lock, and callers get the lock in the order of their calls. */
export interface OneAtATime {
  /** Resolves when the caller has the lock, with a function that releases it. Call the function exactly once, even after an error. */
  enter(): Promise<() => void>;
  /** Returns whether a call of enter() would have to wait now. */
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

/** A piece of work that needs the only slot for long work after it has run for 20 ms; see longWork(). */
export interface LongWork {
  /** If at least 20 ms have passed since the last wait, or since longWork(), waits like begin(). */
  betweenSteps: BetweenSteps;
  /** Waits for the slot, unless this work has it, and for a turn of the event loop. */
  begin(): Promise<void>;
  /** Returns whether betweenSteps() would wait for other long work now. */
  waitsForOthers(): boolean;
  /** Settles like the promise, and releases the slot during the wait, so that other long work can continue. */
  outside<T>(waiting: Promise<T>): Promise<T>;
  /** Releases the slot. Must always be called, even after an error or if the slot was never taken. */
  end(): void;
}

const slot = oneAtATime();

/**
 * Limits work that may take long and use much memory: only one piece of such work runs at a time after its first 20 ms. The work takes the
 * only slot for long work when it first waits in begin() or betweenSteps(), and releases the slot with end(). While the work has the slot,
 * it must not wait for other long work, which could never get the slot.
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

/** Runs all steps, awaits `betweenSteps` after each step, and resolves with the value that the iterator returns. */
export async function runInTurns<T>(steps: Iterator<void, T>, betweenSteps: BetweenSteps): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await betweenSteps();
  }
}

/**
 * Returns a function for work that consists of many small pieces, several of which may start in one turn of the event loop. Call the
 * function before each piece: it returns whether at least 20 ms have passed since its first call in the current turn.
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

/** Returns a function that runs `task`, never twice at the same time. Calls that come before a run begins share this run. */
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
