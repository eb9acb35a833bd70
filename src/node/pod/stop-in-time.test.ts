import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type ContainerRuntime, OutcomeUnknownError } from '../../runtime/runtime.ts';
import { createStopInTime } from './stop-in-time.ts';

const { signal } = new AbortController();

/**
 * The container was created 100 s ago and exits only when killed. `calls` contains "SECONDS_SINCE_TEST_START: GRACE_SECONDS" for each
 * stopContainer().
 */
function stubborn() {
  const timers = createVirtualTimers();
  const begin = timers.now();
  const calls: string[] = [];
  let ended: () => void = () => undefined;
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const answers: (Error | undefined)[] = [];
  const runtime = {
    observe: async () => ({ sandboxes: [], containers: [{ id: 'c', createdAt: begin - 100_000 }] }),
    async stopContainer(_id: string, graceSeconds: number) {
      calls.push(`${(timers.now() - begin) / 1000}: ${graceSeconds}`);
      const failure = answers.shift();
      if (failure !== undefined) throw failure;
      if (graceSeconds === 0) ended();
      return end;
    },
  } as unknown as ContainerRuntime;
  const stopInTime = createStopInTime(runtime, timers);
  const stop = (seconds: number) => stopInTime('u', 'c', begin + seconds * 1000, signal);
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { timers, calls, answers, stop, settled };
}

test('a stop signals a container immediately, and kills it exactly at its deadline', async () => {
  const { timers, calls, stop } = stubborn();
  const stopped = stop(3.5);
  timers.advance(3499);
  expect(calls).toEqual(['0: 4']);
  timers.advance(1);
  await stopped;
  expect(calls).toEqual(['0: 4', '3.5: 0']);
});

test.each([1, 0, -50])('a first stop with a deadline in %i s leaves 2 s between signal and kill', async (seconds) => {
  const { timers, calls, stop, settled } = stubborn();
  const stopped = stop(seconds);
  await settled();
  timers.advance(2000);
  await stopped;
  expect(calls).toEqual(['0: 2', '2: 0']);
});

test('an earlier deadline takes effect, but not within 2 s after the first signal', async () => {
  const { timers, calls, stop } = stubborn();
  const stops = [stop(30)];
  timers.advance(500);
  stops.push(stop(0.5));
  timers.advance(1500);
  await Promise.all(stops);
  expect(calls).toEqual(['0: 30', '0.5: 2', '2: 0']);
});

test('a deadline that is not after the creation kills without a signal', async () => {
  const { calls, stop } = stubborn();
  await stop(-100);
  expect(calls).toEqual(['0: 0']);
});

test('a signal that may not have arrived does not start the 2 s before the kill', async () => {
  const { timers, calls, answers, stop, settled } = stubborn();
  answers.push(new OutcomeUnknownError('connect ECONNREFUSED'));
  await expect(stop(5)).rejects.toBeInstanceOf(OutcomeUnknownError);
  timers.advance(6000);
  const stopped = stop(5);
  await settled();
  timers.advance(2000);
  await stopped;
  expect(calls).toEqual(['0: 5', '6: 2', '8: 0']);
});
