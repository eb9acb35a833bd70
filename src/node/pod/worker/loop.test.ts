import { expect, it } from 'vitest';
import { containerOf, podOf } from '../../../api/core/v1/pod/pod-fixtures.ts';
import { silentLog } from '../../../platform/silent-log.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { createWorkerLoop, type LoopOptions } from './loop.ts';

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

function loopOf(options: Partial<LoopOptions> = {}) {
  const timers = createVirtualTimers();
  const stop = new AbortController();
  const steps: string[] = [];
  const looks: PromiseWithResolvers<void>[] = [];
  const logged: unknown[] = [];
  const loop = createWorkerLoop({
    timers,
    log: { ...silentLog, error: (message, fields) => void logged.push([message, fields]) },
    signal: stop.signal,
    pod: () => podOf(),
    mustObserve: true,
    isObservationDue: () => false,
    observe() {
      steps.push('observe');
      const look = Promise.withResolvers<void>();
      looks.push(look);
      return look.promise;
    },
    decide: () => void steps.push('decide'),
    ...options,
  });
  const seen = async (): Promise<void> => {
    looks.at(-1)?.resolve();
    await settled();
  };
  const failed = async (): Promise<void> => {
    looks.at(-1)?.reject(new Error('no runtime'));
    await settled();
  };
  return { loop, timers, stop, steps, looks, logged, seen, failed };
}

it('the loop decides for the first time after the observation that it needs', async () => {
  const { loop, steps, seen } = loopOf();
  loop.wake();
  loop.wake();
  await settled();
  expect(steps).toEqual(['observe']);
  await seen();
  expect(steps).toEqual(['observe', 'decide']);
});

it('the loop decides at once if no observation is needed', () => {
  const { loop, steps } = loopOf({ mustObserve: false });
  loop.wake();
  expect(steps).toEqual(['decide']);
  loop.wake();
  expect(steps).toEqual(['decide', 'decide']);
});

it('mustObserve() causes one observation at the next wake-up', async () => {
  const { loop, steps, seen } = loopOf({ mustObserve: false });
  loop.mustObserve();
  expect(steps).toEqual([]);
  loop.wake();
  await seen();
  loop.wake();
  await settled();
  expect(steps).toEqual(['observe', 'decide', 'decide']);
});

it('a wake-up during a later observation decides with the previous observation', async () => {
  const { loop, steps, seen } = loopOf();
  loop.wake();
  await seen();
  loop.mustObserve();
  loop.wake();
  loop.wake();
  expect(steps).toEqual(['observe', 'decide', 'observe', 'decide']);
  await seen();
  expect(steps).toEqual(['observe', 'decide', 'observe', 'decide', 'decide']);
});

it('a change during an observation causes another observation', async () => {
  const { loop, steps, seen } = loopOf();
  loop.wake();
  loop.mustObserve();
  await seen();
  expect(steps).toEqual(['observe', 'decide', 'observe']);
  await seen();
  expect(steps).toEqual(['observe', 'decide', 'observe', 'decide']);
});

it('the loop observes while an action waits for an observation', async () => {
  let waiting = 2;
  const { loop, steps, seen } = loopOf({ mustObserve: false, isObservationDue: () => waiting > 0 });
  loop.wake();
  waiting--;
  await seen();
  expect(steps).toEqual(['observe', 'decide', 'observe']);
  waiting--;
  await seen();
  expect(steps).toEqual(['observe', 'decide', 'observe', 'decide']);
});

it('a wake-up during a decision causes no further decision', () => {
  let decisions = 0;
  const { loop } = loopOf({
    mustObserve: false,
    decide() {
      if (decisions++ < 3) loop.wake();
    },
  });
  loop.wake();
  expect(decisions).toBe(1);
  loop.wake();
  expect(decisions).toBe(2);
});

it('after a failed observation, the loop decides nothing, and observes again after one second', async () => {
  const { loop, timers, steps, logged, seen, failed } = loopOf();
  loop.wake();
  await failed();
  expect(steps).toEqual(['observe']);
  expect(logged).toEqual([['pod worker failed', { error: 'Error: no runtime' }]]);
  timers.advance(999);
  expect(steps).toEqual(['observe']);
  timers.advance(1);
  expect(steps).toEqual(['observe', 'observe']);
  await seen();
  timers.advance(60_000);
  expect(steps).toEqual(['observe', 'observe', 'decide']);
});

it('a wake-up observes again at once after a failed observation', async () => {
  const { loop, steps, failed } = loopOf();
  loop.wake();
  await failed();
  loop.wake();
  expect(steps).toEqual(['observe', 'observe']);
});

it('a decision that fails is logged and repeated after one second', () => {
  let decisions = 0;
  const { loop, timers, logged } = loopOf({
    mustObserve: false,
    decide() {
      if (decisions++ === 0) throw new Error('a bug');
    },
  });
  loop.wake();
  expect(logged).toEqual([['pod worker failed', { error: 'Error: a bug' }]]);
  timers.advance(999);
  expect(decisions).toBe(1);
  timers.advance(1);
  expect(decisions).toBe(2);
});

it('a decision that failed does not count as the first one, so a wake-up during an observation waits', async () => {
  let isBroken = true;
  const { loop, steps, seen } = loopOf({
    decide() {
      if (isBroken) throw new Error('a bug');
      steps.push('decide');
    },
  });
  loop.wake();
  await seen();
  isBroken = false;
  loop.mustObserve();
  loop.wake();
  loop.wake();
  expect(steps).toEqual(['observe', 'observe']);
  await seen();
  expect(steps).toEqual(['observe', 'observe', 'decide']);
});

it('a stopped loop ignores wake-ups', () => {
  const { loop, stop, steps } = loopOf();
  stop.abort();
  loop.wake();
  expect(steps).toEqual([]);
});

it('a loop that is stopped during an observation neither decides nor observes again', async () => {
  const { loop, stop, steps, seen } = loopOf();
  loop.wake();
  loop.mustObserve();
  stop.abort();
  await seen();
  expect(steps).toEqual(['observe']);
});

it('a loop that is stopped during an observation neither logs its failure nor retries it', async () => {
  const { loop, timers, stop, steps, logged, failed } = loopOf();
  loop.wake();
  stop.abort();
  await failed();
  expect(logged).toEqual([]);
  expect(await timers.run(() => steps.length > 1, timers.now() + 60_000)).toBe(false);
});

it('wakeAt() replaces the previous timer', () => {
  const { loop, timers, steps } = loopOf({ mustObserve: false });
  loop.wakeAt(timers.now() + 1000);
  loop.wakeAt(timers.now() + 5000);
  timers.advance(4999);
  expect(steps).toEqual([]);
  timers.advance(1);
  expect(steps).toEqual(['decide']);
});

it('wakeAt() without a time cancels the timer', () => {
  const { loop, timers, steps } = loopOf({ mustObserve: false });
  loop.wakeAt(timers.now() + 1000);
  loop.wakeAt(undefined);
  timers.advance(60_000);
  expect(steps).toEqual([]);
});

it('the loop of a Pod with many containers decides once for all wake-ups of a turn of the event loop', async () => {
  const containers = Array.from({ length: 101 }, (_, index) => containerOf(`app${index}`));
  const { loop, steps } = loopOf({ mustObserve: false, pod: () => podOf({ containers }) });
  loop.wake();
  loop.wake();
  expect(steps).toEqual([]);
  await settled();
  expect(steps).toEqual(['decide']);
});
