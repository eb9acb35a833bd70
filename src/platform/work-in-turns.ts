import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work, such as that on one request, may hold the event loop before others have their turn. */
const TURN_MILLIS = 20;

/** Resolves to whether others have had their turn. */
export type BetweenSteps = () => Promise<boolean>;

/**
 * For long work of several steps: the function that it returns is awaited between two steps. It waits for the next turn of
 * the event loop where the steps since the last wait have taken more than 20 ms.
 */
export function workInTurns(): BetweenSteps {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < TURN_MILLIS) return false;
    await nextTurn();
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
