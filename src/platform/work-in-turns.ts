/** How long work, such as that on one request, may hold the event loop before others have their turn. */
const TURN_MILLIS = 20;

/** Resolves to whether others have had their turn. */
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

/** Lets its callers go on one at a time, in the order of their calls. */
export interface OneAtATime {
  /** Resolves to the function that lets the next one go on: it is called once, in any case. */
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
  /** Gives the slot back: it is called in any case, also where the work fails. */
  end(): void;
}

const slot = oneAtATime();

/**
 * Begins work that may take long and keep much memory. Only one such work goes on at a time: it takes the slot for long work
 * before its first wait, and gives it back with `end`. Until then it must not wait for other long work, which could never begin.
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

/** The result of the steps; `betweenSteps` is awaited after each. */
export async function runInTurns<T>(steps: Iterator<void, T>, betweenSteps: BetweenSteps): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await betweenSteps();
  }
}

/**
 * For much work of single pieces that begin in any turn of the event loop: the function that it returns is asked before each
 * piece. It tells whether 20 ms have passed since it was first asked in this turn.
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
