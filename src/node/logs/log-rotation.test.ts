import { EventEmitter } from 'node:events';
import fs, {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { stat } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { type RotationOptions, startLogRotation, type WrittenLog } from './log-rotation.ts';

const MAX_BYTES = 1_000;
const MAX_FILES = 3;

let folder: string;
let path: string;
let stop: AbortController;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-rotation-'));
  path = join(folder, '0.log');
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
  rmSync(folder, { recursive: true });
});

function rotation(
  reopen: RotationOptions['reopen'] = async () => writeFileSync(path, ''),
  logEnded: RotationOptions['logEnded'] = async () => undefined,
) {
  const timers: VirtualTimers = createVirtualTimers(Date.UTC(2026, 0, 31));
  const waits: number[] = [];
  let heard = Promise.withResolvers<void>();
  const warnings: string[] = [];
  let listener: Parameters<RotationOptions['follow']>[0] | undefined;
  startLogRotation({
    maxBytes: MAX_BYTES,
    maxFiles: MAX_FILES,
    intervalMillis: 1_000,
    timers: {
      ...timers,
      at(time, callback) {
        waits.push(time - timers.now());
        heard.resolve();
        return timers.at(time, callback);
      },
    },
    log: { ...silentLog, warn: (message, fields) => void warnings.push(`${message}: ${fields?.['error']}`) },
    signal: stop.signal,
    follow(given) {
      listener = given;
    },
    reopen,
    logEnded,
  });
  return {
    warnings,
    logs: (...logs: WrittenLog[]): void => listener?.('uid', logs),
    async wait(): Promise<number> {
      while (waits.length === 0) {
        await heard.promise;
        heard = Promise.withResolvers();
      }
      return waits.shift() as number;
    },
    advance: (millis: number): void => timers.advance(millis),
  };
}
const write = (bytes: number): void => appendFileSync(path, 'x'.repeat(bytes));
/** Resolves after many more file system calls than a check of the log makes, so that a check that has started is over. */
const looked = async (): Promise<void> => {
  for (let step = 0; step < 200; step++) await stat(folder);
};
const running = (): WrittenLog => ({ containerId: 'a', path, ended: false });
const files = (): string[] => readdirSync(folder).sort();
const until = (done: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (!done()) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(folder, look);
    look();
  });

it('log rotation checks a log while it is written, more often the faster it fills, and not while it is idle', async () => {
  writeFileSync(path, '');
  const { logs, wait, advance } = rotation();
  logs(running());
  expect(await wait()).toBe(100);
  advance(100);
  await looked();
  // Nothing was written: no timer is set until the next write.
  write(100);
  expect(await wait()).toBe(100);
  write(100);
  advance(100);
  // The log has grown by 200 bytes in 100 ms, and there is room for 800 more.
  expect(await wait()).toBe(400);
  write(10);
  advance(400);
  expect(await wait()).toBe(1_000);
  write(800);
  advance(1_000);
  expect(files()).toEqual(['0.log']);
  await wait();
  expect(files()).toEqual(['0.log', '0.log.20260131-000001']);
  advance(1_000);
  await looked();
  write(1);
  expect(await wait()).toBe(100);
});

it('log rotation checks a log at intervals if the watch of the file fails', async () => {
  writeFileSync(path, '');
  const failing = new EventEmitter() as ReturnType<typeof watch>;
  failing.close = () => undefined;
  const watching = vi.spyOn(fs, 'watch').mockImplementation(() => {
    setImmediate(() => failing.emit('error', new Error('no memory')));
    return failing;
  });
  syncBuiltinESMExports();
  try {
    const { logs, wait, advance } = rotation();
    logs(running());
    expect(await wait()).toBe(100);
    advance(100);
    expect(await wait()).toBe(1_000);
    expect(watching).toHaveBeenCalledOnce();
  } finally {
    watching.mockRestore();
    syncBuiltinESMExports();
  }
});

it('log rotation bounds the log of a container that has ended, also of one that ended while no engine ran', async () => {
  for (const attempt of [0, 1]) writeFileSync(join(folder, `${attempt}.log`), `${'x'.repeat(99)}\n`.repeat(100));
  const { logs } = rotation(() => Promise.reject(new Error('not called')));
  const logOf = (attempt: number): WrittenLog => ({
    containerId: String(attempt),
    path: join(folder, `${attempt}.log`),
    ended: true,
  });
  logs(logOf(0), logOf(1));
  await until(
    () =>
      files().join() === '0.log,1.log' &&
      files().every((file) => statSync(join(folder, file)).size === MAX_BYTES * MAX_FILES),
  );
});

it('log rotation bounds the log of a container that has ended once the runtime has written all of it', async () => {
  const ending = Promise.withResolvers<void>();
  const { logs, warnings } = rotation(undefined, () => ending.promise);
  writeFileSync(path, `${'x'.repeat(99)}\n`.repeat(100));
  logs({ ...running(), ended: true });
  await new Promise(setImmediate);
  appendFileSync(path, 'end\n');
  ending.resolve();
  await until(() => files().join() === '0.log' && statSync(path).size < MAX_BYTES * MAX_FILES);
  expect(readFileSync(path, 'utf8').slice(-5)).toBe('\nend\n');
  expect(warnings).toEqual([]);
});

it('log rotation retries with back-off if the runtime does not reopen the log', async () => {
  writeFileSync(path, 'x'.repeat(MAX_BYTES));
  let down = true;
  const { logs, wait, advance, warnings } = rotation(async () => {
    if (down) throw new Error('down');
    writeFileSync(path, '');
  });
  logs(running());
  for (const expected of [1_000, 2_000, 4_000, 8_000, 10_000]) {
    expect(await wait()).toBe(expected);
    expect(files()).toEqual(['0.log']);
    advance(expected);
  }
  expect(await wait()).toBe(10_000);
  expect(warnings).toEqual(Array(6).fill('cannot rotate the log: down'));
  down = false;
  advance(10_000);
  await wait();
  expect(files()).toHaveLength(2);
});

it('log rotation stops for a Pod that was removed', async () => {
  writeFileSync(path, '');
  const { logs, wait, advance } = rotation(() => Promise.reject(new Error('not called')));
  logs(running());
  write(1);
  await wait();
  logs();
  renameSync(path, `${path}.gone`);
  advance(60_000);
  const other = { containerId: 'b', path: join(folder, '1.log'), ended: false };
  writeFileSync(other.path, 'x');
  logs(other);
  expect(await wait()).toBe(100);
  expect(files()).toEqual(['0.log.gone', '1.log']);
});

it('log rotation handles the logs of thousands of containers in linear time', () => {
  const count = 2000;
  let looks = 0;
  const logs = Array.from(
    { length: count },
    (_, index): WrittenLog => ({
      get containerId() {
        looks++;
        return `c${index}`;
      },
      path: join(folder, `${index}.log`),
      ended: true,
    }),
  );
  const { logs: follow } = rotation();
  follow(...logs);
  follow(...logs);
  expect(looks).toBeLessThan(20 * count);
  // Abort before any of the logs is checked.
  stop.abort();
});
