import { expect, test } from 'vitest';
import { atMost, inTime } from './at-most.ts';
import { createVirtualTimers } from './virtual-timers.ts';

/** `result()` returns the outcome, or undefined while atMost() waits. */
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

test('inTime() resolves with the value, and rejects with the message after the time or with the reason of the signal', async () => {
  const timers = createVirtualTimers();
  const stop = new AbortController();
  const never = new Promise<string>(() => undefined);
  const { signal } = stop;
  expect(await inTime(Promise.resolve('value'), 1000, timers, 'too late', signal)).toBe('value');
  await expect(inTime(Promise.reject(new Error('failed')), 1000, timers, 'too late', signal)).rejects.toThrow('failed');
  const results = [inTime(never, 1000, timers, 'too late', signal), inTime(never, 1001, timers, 'too late', signal)];
  const settled = Promise.allSettled(results);
  timers.advance(1000);
  await new Promise(setImmediate);
  stop.abort(new Error('stopped'));
  expect((await settled).map((each) => each.status === 'rejected' && String(each.reason))).toEqual([
    'Error: too late',
    'Error: stopped',
  ]);
});
