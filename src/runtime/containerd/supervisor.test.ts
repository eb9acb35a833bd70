import { expect, test } from 'vitest';
import type { Log } from '../../platform/platform.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { ContainerdExit, ContainerdProcess } from './process.ts';
import { superviseContainerd } from './supervisor.ts';

interface Launch {
  at: number;
  signal: AbortSignal | undefined;
  exit(exit?: Partial<ContainerdExit>): void;
}

/**
 * Simulates a machine on which each containerd is ready immediately, unless `failures` has an error for the number of its launch.
 * beforeRestart() waits for `mend`. `logged`: the level and the fields of all messages. `restarts`: how often beforeRestart() was called.
 */
function machine(failures: Readonly<Record<number, string>> = {}, mend?: Promise<void>) {
  const timers = createVirtualTimers(0);
  const launches: Launch[] = [];
  const logged: [string, unknown][] = [];
  const write = (level: string) => (_: string, fields?: object) => void logged.push([level, fields]);
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  let [restarts, ends] = [0, 0];
  const launch = (signal?: AbortSignal): ContainerdProcess => {
    const pid = launches.length;
    const exited = Promise.withResolvers<ContainerdExit>();
    const exit = (how: Partial<ContainerdExit> = {}): void => exited.resolve({ code: 1, signal: null, ...how });
    launches.push({ at: timers.now(), signal, exit });
    const failure = failures[pid];
    if (failure !== undefined) exit();
    return {
      pid: () => pid,
      exited: exited.promise,
      ready: failure === undefined ? Promise.resolve(`v${pid}`) : Promise.reject(new Error(failure)),
      end: async () => {
        ends++;
        exit({ code: 0 });
      },
    };
  };
  const beforeRestart = async (): Promise<void> => {
    restarts++;
    await mend;
  };
  /** Ends the containerd that runs, and resolves with the delay before the next launch. */
  const crash = async (): Promise<number> => {
    const count = launches.length;
    const at = timers.now();
    launches.at(-1)?.exit();
    await timers.run(() => launches.length > count, at + 60_000);
    return (launches.at(-1)?.at ?? 0) - at;
  };
  return {
    options: { launch, beforeRestart, log, timers },
    timers,
    launches,
    logged,
    crash,
    counts: () => ({ restarts, ends }),
  };
}
const settle = (): Promise<void> => new Promise(setImmediate);

test('the first containerd gets the signal, and its version and process ID are reported', async () => {
  const { options, launches } = machine();
  const { signal } = new AbortController();
  const supervisor = await superviseContainerd(options, signal);
  expect(supervisor.version).toBe('v0');
  expect(supervisor.pid()).toBe(0);
  expect(launches).toMatchObject([{ signal }]);
  await supervisor.stop();
});

test('if the first containerd does not start, the supervision fails and containerd is not started again', async () => {
  const { options, timers, launches } = machine({ 0: 'no' });
  await expect(superviseContainerd(options)).rejects.toThrow('no');
  await timers.run(() => false, 60_000);
  expect(launches).toHaveLength(1);
});

test('containerd is started again after each exit, with a delay that doubles from 50 ms to 10 s', async () => {
  const { options, crash, counts, launches } = machine();
  const supervisor = await superviseContainerd(options, new AbortController().signal);
  const delays: number[] = [];
  for (let i = 0; i < 10; i++) delays.push(await crash());
  expect(delays).toEqual([50, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
  expect(counts().restarts).toBe(10);
  expect(supervisor.pid()).toBe(10);
  expect(launches.at(-1)?.signal).toBeUndefined();
  await supervisor.stop();
});

test('the delay is 50 ms again only if containerd has run for more than 30 s', async () => {
  const { options, timers, crash } = machine();
  const supervisor = await superviseContainerd(options);
  await crash();
  timers.advance(30_000);
  expect(await crash()).toBe(100);
  timers.advance(30_001);
  expect(await crash()).toBe(50);
  expect(await crash()).toBe(100);
  await supervisor.stop();
});

test('a containerd that does not start again is reported and started once more', async () => {
  const { options, timers, launches, logged } = machine({ 1: 'full', 2: 'full' });
  const supervisor = await superviseContainerd(options);
  launches[0]?.exit({ code: null, signal: 'SIGKILL' });
  await timers.run(() => launches.length === 4, 60_000);
  await settle();
  expect(launches.map(({ at }) => at)).toEqual([0, 50, 150, 350]);
  expect(logged).toEqual([
    ['warn', { code: null, signal: 'SIGKILL', waitMillis: 50 }],
    ['error', { error: 'Error: full' }],
    ['warn', { code: 1, signal: null, waitMillis: 100 }],
    ['error', { error: 'Error: full' }],
    ['warn', { code: 1, signal: null, waitMillis: 200 }],
    ['info', undefined],
  ]);
  await supervisor.stop();
});

test('each listener is called after each exit, before the restart, but not after stop()', async () => {
  const { options, launches, crash } = machine();
  const supervisor = await superviseContainerd(options);
  const seen: unknown[] = [];
  supervisor.onExit((exit) => seen.push([exit, launches.length]));
  supervisor.onExit(() => seen.push('second'));
  await crash();
  expect(seen).toEqual([[{ code: 1, signal: null }, 1], 'second']);
  await supervisor.stop();
  expect(seen).toHaveLength(2);
});

test('stop() ends containerd, which is not started again', async () => {
  const { options, timers, launches, logged, counts } = machine();
  const supervisor = await superviseContainerd(options);
  await supervisor.stop();
  await timers.run(() => false, 60_000);
  expect(launches).toHaveLength(1);
  expect(counts()).toEqual({ restarts: 0, ends: 1 });
  expect(logged).toEqual([]);
});

test('stop() during the delay before a restart does not wait for the end of the delay', async () => {
  const { options, launches } = machine();
  const supervisor = await superviseContainerd(options);
  launches[0]?.exit();
  await settle();
  await supervisor.stop();
  expect(launches).toHaveLength(1);
});

test('stop() during beforeRestart() waits for its end, and containerd is not started again', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { options, timers, launches, counts } = machine({}, promise);
  const supervisor = await superviseContainerd(options);
  launches[0]?.exit();
  await timers.run(() => counts().restarts === 1, 60_000);
  let isStopped = false;
  const stopped = supervisor.stop().then(() => {
    isStopped = true;
  });
  await settle();
  expect(isStopped).toBe(false);
  resolve();
  await stopped;
  expect(launches).toHaveLength(1);
});
