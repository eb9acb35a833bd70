import { expect, test } from 'vitest';
import { atMost } from './at-most.ts';
import { createVirtualTimers } from './virtual-timers.ts';

/** Calls atMost() with a promise that the test settles. `result()` returns the result, or undefined while it waits. */
function waiting() {
  const timers = createVirtualTimers();
  const stop = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let result: string | undefined;
  void atMost(promise, 1000, timers, stop.signal).then(
    () => {
      result = 'resolved';
    },
    (error: Error) => {
      result = error.message;
    },
  );
  return {
    timers,
    stop,
    resolve,
    reject,
    async result() {
      await new Promise(setImmediate);
      return result;
    },
  };
}

test('atMost() ends with the promise', async () => {
  const success = waiting();
  expect(await success.result()).toBeUndefined();
  success.resolve();
  expect(await success.result()).toBe('resolved');
  const failure = waiting();
  failure.reject(new Error('failed'));
  expect(await failure.result()).toBe('failed');
});

test('atMost() resolves after the given time', async () => {
  const { timers, result } = waiting();
  timers.advance(999);
  expect(await result()).toBeUndefined();
  timers.advance(1);
  expect(await result()).toBe('resolved');
});

test('atMost() resolves when the signal aborts', async () => {
  const { stop, result } = waiting();
  stop.abort();
  expect(await result()).toBe('resolved');
});
