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
 * For long work of several steps: the returned function is awaited between two steps. It waits for a turn of the event loop
 * of its own where the steps since the last wait have taken more than 20 ms.
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
