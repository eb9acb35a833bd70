import { expect, test } from 'vitest';
import { ApiError, conflict } from '../machinery/status.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { createWorkQueue, type Pause, workQueueMetrics } from './work-queue.ts';

function setUp(pause?: Pause) {
  const timers = createVirtualTimers();
  const stop = new AbortController();
  const begun: string[] = [];
  /** Functions that end the processing of a key, with an error if one is passed. */
  const finish = new Map<string, (error?: Error) => Promise<void>>();
  const queue = createWorkQueue({
    name: 'test',
    log: silentLog,
    timers,
    signal: stop.signal,
    pause,
    process: (key) => {
      begun.push(key);
      return new Promise((resolve, reject) => {
        finish.set(key, async (error) => {
          if (error === undefined) resolve();
          else reject(error);
          // On a loaded machine, the turn of the event loop may be over by now. The queue then continues in the next turn.
          for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
        });
      });
    },
  });
  return { timers, stop, begun, finish, queue };
}

test('a work queue processes different keys concurrently, and one key never twice at the same time', async () => {
  const { begun, finish, queue } = setUp();
  queue.add('x');
  queue.add('y');
  expect(begun).toEqual(['x', 'y']);
  queue.add('x');
  queue.add('x');
  expect(begun).toEqual(['x', 'y']);
  await finish.get('x')?.();
  expect(begun).toEqual(['x', 'y', 'x']);
  await finish.get('x')?.();
  expect(begun).toEqual(['x', 'y', 'x']);
});

test('a paused work queue completes the keys that it processes, and processes the others after the pause', async () => {
  let isActive = false;
  let end = (): void => undefined;
  const onEnd = (act: () => void): void => {
    end = act;
  };
  const { begun, finish, queue } = setUp({ isActive: () => isActive, onEnd });
  queue.add('x');
  isActive = true;
  for (const key of ['x', 'y', 'y']) queue.add(key);
  await finish.get('x')?.();
  expect(begun).toEqual(['x']);
  isActive = false;
  end();
  expect(begun).toEqual(['x', 'x', 'y']);
});

test('a work queue processes at most 16 keys at a time', async () => {
  const { begun, finish, queue } = setUp();
  for (let i = 0; i < 20; i++) queue.add(`k${i}`);
  expect(begun).toHaveLength(16);
  await finish.get('k3')?.();
  expect(begun).toHaveLength(17);
});

test('a failed key is retried with a delay that doubles; success resets the delay', async () => {
  const { timers, begun, finish, queue } = setUp();
  queue.add('x');
  for (const pause of [10, 20, 40]) {
    await finish.get('x')?.(new Error('no'));
    const before = begun.length;
    timers.advance(pause / 2 - 1);
    expect(begun).toHaveLength(before);
    timers.advance(pause / 2 + 1);
    expect(begun).toHaveLength(before + 1);
  }
  await finish.get('x')?.();
  queue.add('x');
  await finish.get('x')?.(new Error('no'));
  timers.advance(10);
  expect(begun).toHaveLength(6);
});

test('a key that is added while it is in back-off is processed immediately, and only once', async () => {
  const { timers, begun, finish, queue } = setUp();
  queue.add('x');
  await finish.get('x')?.(new Error('no'));
  queue.add('x');
  expect(begun).toEqual(['x', 'x']);
  await finish.get('x')?.();
  timers.advance(100_000);
  expect(begun).toEqual(['x', 'x']);
});

test('idle() resolves when no key is queued or being processed', async () => {
  const { finish, queue } = setUp();
  await queue.idle();
  queue.add('x');
  queue.add('x');
  let idle = false;
  const done = queue.idle().then(() => {
    idle = true;
  });
  await finish.get('x')?.();
  expect(idle).toBe(false);
  await finish.get('x')?.(new Error('no'));
  await done;
});

test('a work queue starts no key after its signal has aborted', async () => {
  const { timers, stop, begun, finish, queue } = setUp();
  queue.add('x');
  queue.add('y');
  await finish.get('x')?.(new Error('no'));
  stop.abort();
  timers.advance(100_000);
  queue.add('z');
  await finish.get('y')?.(new Error('no'));
  timers.advance(100_000);
  expect(begun).toEqual(['x', 'y']);
});

test('workQueueMetrics includes a queue until it is stopped', async () => {
  const { stop, finish, queue } = setUp();
  const metrics = (): Record<string, number> =>
    Object.fromEntries(
      workQueueMetrics().flatMap(({ name, samples }) =>
        samples.filter(({ labels }) => labels['name'] === 'test').map(({ value }) => [name, value]),
      ),
    );
  const before = metrics();
  for (let i = 0; i < 18; i++) queue.add(`k${i}`);
  await finish.get('k0')?.(new Error('no'));
  const now = metrics();
  const grown = Object.keys(now).map((name) => (now[name] ?? 0) - (before[name] ?? 0));
  expect(Object.keys(now)).toEqual([
    'workqueue_depth',
    'workqueue_active',
    'workqueue_adds_total',
    'workqueue_retries_total',
  ]);
  expect(grown).toEqual([1, 16, 18, 1]);
  stop.abort();
  expect((metrics()['workqueue_active'] ?? 0) - (before['workqueue_active'] ?? 0)).toBe(0);
});

/** The processing of each key blocks the event loop for 5 ms and awaits nothing. */
function setUpBusy() {
  const stop = new AbortController();
  let done = 0;
  const queue = createWorkQueue({
    name: 'busy',
    log: silentLog,
    timers: createVirtualTimers(),
    signal: stop.signal,
    process: async () => {
      const end = performance.now() + 5;
      while (performance.now() < end);
      done += 1;
    },
  });
  for (let i = 0; i < 60; i++) queue.add(`k${i}`);
  return { stop, queue, done: () => done };
}

test('a work queue yields to the event loop while it processes many keys without I/O', async () => {
  const { queue, done } = setUpBusy();
  const seen: number[] = [];
  const look = (): void => {
    seen.push(done());
    if (done() < 60) setImmediate(look);
  };
  setImmediate(look);
  await queue.idle();
  expect(done()).toBe(60);
  // add() processes the first 16 keys immediately. The other 44 keys take 220 ms, spread over several turns of the event loop.
  expect(seen.length).toBeGreaterThan(5);
});

test('idle() resolves when the queue is stopped between two turns of the event loop', async () => {
  const { stop, queue, done } = setUpBusy();
  const idle = queue.idle();
  await new Promise(setImmediate);
  stop.abort();
  await idle;
  expect(done()).toBeLessThan(60);
});

test('a failure is a warning, but an expected one only when it is repeated', async () => {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'no',
    code: 403,
  } as const;
  const ending = new ApiError({
    ...status,
    reason: 'Forbidden',
    details: { causes: [{ reason: 'NamespaceTerminating', message: 'namespace a is being terminated' }] },
  });
  const levelsOf = async (error: Error): Promise<string[]> => {
    const [timers, levels, stop] = [createVirtualTimers(), [] as string[], new AbortController()];
    const add = (level: string) => () => void levels.push(level);
    const log = { ...silentLog, debug: add('debug'), warn: add('warn') };
    const process = () => Promise.reject(error);
    const queue = createWorkQueue({ name: 'test', log, timers, signal: stop.signal, process });
    queue.add('x');
    for (let failures = 1; failures <= 6; failures++) {
      await new Promise(setImmediate);
      timers.advance(60_000);
    }
    stop.abort();
    return levels.slice(0, 6);
  };
  const repeated = ['debug', 'debug', 'debug', 'debug', 'warn', 'warn'];
  expect(await levelsOf(ending)).toEqual(repeated);
  expect(await levelsOf(conflict({ group: '', resource: 'pods' }, 'x', 'changed'))).toEqual(repeated);
  expect(await levelsOf(new Error('other'))).toEqual(Array.from({ length: 6 }, () => 'warn'));
});
