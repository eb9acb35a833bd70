import { afterEach, expect, it, vi } from 'vitest';
import { machineClock, type SteadyClocks, systemTimers } from './node-js.ts';

afterEach(() => vi.restoreAllMocks());

it.each([3_600_000, -3_600_000])('timers keep real time while the machine clock changes by %d ms', async (millis) => {
  const timers = systemTimers();
  const dateNow = Date.now;
  const before = timers.now();
  const fired = new Promise<number>((resolve) => void timers.at(before + 50, () => resolve(timers.now())));
  vi.spyOn(Date, 'now').mockImplementation(() => dateNow() + millis);
  expect(Math.abs(machineClock.now() - timers.now() - millis)).toBeLessThan(1_000);
  const later = (await fired) - before;
  expect(later).toBeGreaterThanOrEqual(50);
  expect(later).toBeLessThan(10_000);
});

const clocks = (): SteadyClocks & { run(millis: number): void; suspend(millis: number): void } => {
  let ran = 5_000;
  let booted = 1_000_000;
  return {
    processMillis: () => ran,
    bootMillis: () => booted,
    run(millis) {
      ran += millis;
      booted += millis;
    },
    suspend(millis) {
      booted += millis;
    },
  };
};

it('the engine clock includes suspended time, and timers that became due during the suspension fire immediately', async () => {
  const machine = clocks();
  const timers = systemTimers(machine);
  const before = timers.now();
  const fired = new Promise<number>((resolve) => void timers.at(before + 3_600_000, () => resolve(timers.now())));
  machine.run(10_000);
  expect(timers.now() - before).toBe(10_000);
  machine.suspend(7_200_000);
  machine.run(1_000);
  expect(timers.now() - before).toBe(7_211_000);
  expect((await fired) - before).toBe(7_211_000);
  machine.suspend(60_000);
  machine.run(1_000);
  expect(timers.now() - before).toBe(7_272_000);
});

it.each(['the start', 'a comparison'])(
  'a process that stalls while it reads the clocks at %s is not regarded as suspended',
  (when) => {
    const machine = clocks();
    let stallMillis = 0;
    const stalling: SteadyClocks = {
      processMillis: machine.processMillis,
      bootMillis() {
        const early = machine.bootMillis();
        machine.run(stallMillis);
        return when === 'the start' ? early : machine.bootMillis();
      },
    };
    if (when === 'the start') stallMillis = 5_000;
    const timers = systemTimers(stalling);
    stallMillis = 0;
    const before = timers.now();
    machine.run(1_000);
    if (when === 'a comparison') stallMillis = 5_000;
    timers.now();
    stallMillis = 0;
    machine.run(1_000);
    expect(timers.now() - before).toBe(when === 'the start' ? 2_000 : 7_000);
    machine.suspend(60_000);
    machine.run(1_000);
    expect(timers.now() - before).toBe(when === 'the start' ? 63_000 : 68_000);
  },
);

it('differences of less than 2 s between the two clocks are not regarded as a suspension', () => {
  const machine = clocks();
  const timers = systemTimers(machine);
  const before = timers.now();
  for (const apart of [900, -900, 1_900, -1_900]) {
    machine.suspend(apart);
    machine.run(1_000);
    timers.now();
  }
  expect(timers.now() - before).toBe(4_000);
});

it('the engine clock advances at the same rate as the clock of the process', async () => {
  const timers = systemTimers();
  const before = timers.now();
  const started = performance.now();
  await new Promise<void>((resolve) => void timers.at(before + 1_100, resolve));
  expect(Math.abs(timers.now() - before - (performance.now() - started))).toBeLessThan(50);
});
