/** How long one piece of work, such as a request, may occupy the event loop before others get a turn. */
const TURN_MILLIS = 20;

/** Resolves to true if other work got a turn in between. */
export type BetweenSteps = () => Promise<boolean>;

const waiting: (() => void)[] = [];

/** Resolves in a turn of the event loop in which no other waiter resolves. Waiters have their turns in the order of their calls. */
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
 * Returns a function that long work awaits between two steps. Where the steps since the last wait have taken more than 20 ms,
 * the function waits for a turn of the event loop of its own.
 */
export function workInTurns(): BetweenSteps {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < TURN_MILLIS) return false;
    await nextOwnTurn();
    began = performance.now();
    return true;
  };
}

/** A fair lock: lets one caller through at a time, in the order of the calls. */
export interface OneAtATime {
  /** Resolves to the function that releases the lock. It must be called exactly once, also after an error. */
  enter(): Promise<() => void>;
  /** Whether a caller that enters now has to wait. */
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

export interface LongWork {
  /** Waits for the slot and for a turn where the steps since the last wait have taken more than 20 ms. */
  betweenSteps: BetweenSteps;
  /** Waits for the slot and for a turn in any case. */
  begin(): Promise<void>;
  /** Whether `betweenSteps` would wait for other long work now. */
  waitsForOthers(): boolean;
  /** Releases the slot. It must be called in any case, also after an error. */
  end(): void;
}

const slot = oneAtATime();

/**
 * Begins work that may take long and use much memory. Only one such piece of work runs at a time: it takes the slot for long work
 * before its first wait, and releases it with `end`. Until then it must not wait for other long work, which could never begin.
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
  return {
    begin,
    async betweenSteps() {
      if (!isTurnOver()) return false;
      await begin();
      return true;
    },
    waitsForOthers: () => leave === undefined && slot.isTaken() && isTurnOver(),
    end() {
      leave?.();
      leave = undefined;
    },
  };
}

/** Runs all steps, awaits `betweenSteps` after each, and resolves with their result. */
export async function runInTurns<T>(steps: Iterator<void, T>, betweenSteps: BetweenSteps): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await betweenSteps();
  }
}

/**
 * For work in many small pieces that begin in any turn of the event loop. The returned function is called before each piece, and
 * returns whether 20 ms have passed since its first call in the current turn.
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
