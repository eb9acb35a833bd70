import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import { containerRate, createSampler, firstOf, machineRate, type Sample, thinned } from './sampler.ts';

const container = (at: number, cpuSeconds: number, id = 'c'): ContainerUsage => ({
  podUid: 'u',
  id,
  name: 'app',
  attempt: 0,
  at,
  cpuNanoSeconds: cpuSeconds * 1e9,
  workingSetBytes: 1,
});
const sample = (at: number, containers: ContainerUsage[] = []): Sample => ({
  at,
  machine: {
    at,
    cpuNanoSeconds: at * 2e6,
    bootedAt: 0,
    memory: { usageBytes: 0, workingSetBytes: 0, availableBytes: 0, rssBytes: 0 },
  },
  containers,
});

/** The machine always uses two cores. */
function sampling() {
  const timers = createVirtualTimers(1_000_000);
  const looks: number[] = [];
  const end = new AbortController();
  const sampler = createSampler({
    timers,
    signal: end.signal,
    look: async () => {
      looks.push(timers.now());
      return sample(timers.now());
    },
  });
  return {
    looks,
    end,
    sampler,
    timers,
    pass: (millis: number) => timers.run(() => false, timers.now() + millis),
    async ask() {
      const began = timers.now();
      let answer: Awaited<ReturnType<typeof sampler.pair>> | undefined;
      const asked = sampler.pair().then((pair) => {
        answer = pair;
      });
      await timers.run(() => answer !== undefined, began + 10_000);
      await asked;
      if (answer === undefined) throw new Error('no answer');
      return { ...answer, window: answer.last.at - answer.first.at, took: timers.now() - began };
    },
  };
}

test('the first request for usage takes a second, and requests within the next second get the same answer', async () => {
  const { ask, looks, pass } = sampling();
  expect(await ask()).toMatchObject({ window: 1000, took: 1000 });
  await pass(900);
  expect(await ask()).toMatchObject({ window: 1000, took: 0 });
  expect(looks).toHaveLength(2);
});

test('later requests for usage do not wait, and their window grows to at least 15 s', async () => {
  const { ask, pass } = sampling();
  await ask();
  const windows: number[] = [];
  for (let times = 0; times < 20; times++) {
    await pass(3000);
    const { window, took } = await ask();
    expect(took).toBe(0);
    windows.push(window);
  }
  expect(windows.slice(0, 4)).toEqual([4000, 7000, 10_000, 13_000]);
  for (const window of windows.slice(6)) {
    expect(window).toBeGreaterThanOrEqual(15_000);
    expect(window).toBeLessThanOrEqual(24_000);
  }
});

test('concurrent requests for usage share the samples', async () => {
  const { sampler, timers, looks } = sampling();
  const all = Promise.all([sampler.pair(), sampler.pair(), sampler.pair()]);
  let done = false;
  all.then(() => {
    done = true;
  });
  await timers.run(() => done, timers.now() + 5000);
  await all;
  expect(looks).toHaveLength(2);
});

test('the sampler drops samples older than a minute', async () => {
  const { ask, pass } = sampling();
  await ask();
  await pass(61_000);
  expect(await ask()).toMatchObject({ window: 1000, took: 1000 });
});

test('the sampler rejects waiting requests when the signal aborts', async () => {
  const { sampler, end, timers } = sampling();
  const asked = sampler.pair();
  const refused = expect(asked).rejects.toThrow('the node ends');
  await timers.run(() => false, timers.now());
  end.abort(new Error('the node ends'));
  await refused;
});

test('thinned() drops samples that are close to each other', () => {
  let kept: Sample[] = [];
  for (const at of [0, 1000, 2000, 4900, 5100, 7000]) kept = thinned([...kept, sample(at)]);
  expect(kept.map(({ at }) => at)).toEqual([0, 4900, 7000]);
});

test('firstOf() chooses the newest sample that is 15 s older than the last, or the oldest one', () => {
  const looks = [0, 4000, 9000, 20_000].map((at) => sample(at));
  const chosen = (from: number): number => firstOf(looks.slice(0, from), looks[from - 1] ?? sample(0)).at;
  expect([chosen(1), chosen(2), chosen(3), chosen(4)]).toEqual([0, 0, 0, 4000]);
});

test('containerRate() and machineRate() compute CPU time per second', () => {
  const first = sample(1000, [container(1000, 5)]);
  const last = sample(3000);
  const pair = { first, last };
  expect(containerRate(pair, container(3000, 6), undefined)).toBe(0.5e9);
  // The container `new` started between the samples. In the second call, the time of its start is unknown.
  expect(containerRate(pair, container(3000, 1, 'new'), 2500)).toBe(2e9);
  expect(containerRate(pair, container(3000, 1, 'new'), undefined)).toBeUndefined();
  expect(containerRate(pair, container(3000, 5), undefined)).toBe(0);
  expect(containerRate(pair, container(1000, 5), undefined)).toBeUndefined();
  expect(machineRate(pair)).toBe(2e9);
});
