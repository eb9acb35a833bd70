import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataDirOwner, isSessionEngine, lockDataDir, lockPath } from '../../platform/files.ts';
import {
  forgetOwner,
  isStarting,
  isStopping,
  keepSessionEngine,
  lockForStart,
  recordStarted,
  recordStopping,
  untilReleasedBy,
  untilStarted,
} from './lock-line.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-lock-line-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('an engine that is stopping keeps its PID and role, and one that has stopped has no PID', () => {
  const lock = lockDataDir(folder, 'session');
  expect(isStopping(folder)).toBe(false);
  recordStopping(folder);
  expect([isStopping(folder), isSessionEngine(folder), dataDirOwner(folder)]).toEqual([true, true, process.pid]);
  keepSessionEngine(folder, process.pid);
  expect([isStopping(folder), isSessionEngine(folder), dataDirOwner(folder)]).toEqual([true, false, process.pid]);
  forgetOwner(folder);
  expect([isStopping(folder), dataDirOwner(folder)]).toEqual([false, undefined]);
  lock.release();
});

test('an engine is starting until it has recorded that it has started, and keeps a role that changes meanwhile', () => {
  const lock = lockForStart(folder, 'session');
  expect([isStarting(folder), isSessionEngine(folder), dataDirOwner(folder)]).toEqual([true, true, process.pid]);
  keepSessionEngine(folder, process.pid);
  expect([isStarting(folder), isSessionEngine(folder)]).toEqual([true, false]);
  recordStarted(folder);
  expect([isStarting(folder), isSessionEngine(folder), dataDirOwner(folder)]).toEqual([false, false, process.pid]);
  recordStopping(folder);
  recordStarted(folder);
  expect([isStarting(folder), isStopping(folder)]).toEqual([false, true]);
  lock.release();
});

test('untilStarted waits until an engine has recorded that it has started, or has ended without a word', async () => {
  const { signal } = new AbortController();
  const order: string[] = [];
  const begin = (): Promise<unknown> => untilStarted(folder, signal).then(() => order.push('resolved'));
  const started = lockForStart(folder, 'engine');
  const waits = begin();
  // This change of the line does not end the wait.
  keepSessionEngine(folder, process.pid);
  order.push('starts');
  recordStarted(folder);
  await waits;
  started.release();
  const killed = spawn('flock', [
    lockPath(folder),
    'sh',
    '-c',
    `echo "$$ engine starting" >${lockPath(folder)}; read x`,
  ]);
  await expect.poll(() => isStarting(folder)).toBe(true);
  const ends = begin();
  order.push('ends');
  killed.stdin.end();
  await ends;
  await untilStarted(folder, signal);
  expect([isStarting(folder), order]).toEqual([true, ['starts', 'resolved', 'ends', 'resolved']]);
});

test('untilReleasedBy also resolves if another process takes the lock as soon as the engine has ended', async () => {
  const { signal } = new AbortController();
  const engine = lockForStart(folder, 'engine');
  const order: string[] = [];
  const waits = untilReleasedBy(folder, process.pid, signal).then(() => order.push('resolved'));
  recordStarted(folder);
  recordStopping(folder);
  forgetOwner(folder);
  // The lock stays locked, as if the kernel had given it to the next engine instead of the waiting process.
  order.push('next engine');
  writeFileSync(lockPath(folder), `${process.pid + 1} engine starting\n`);
  await waits;
  expect(order).toEqual(['next engine', 'resolved']);
  await untilReleasedBy(folder, process.pid, signal);
  const ends = untilReleasedBy(folder, process.pid + 1, signal);
  engine.release();
  await ends;
});

test('untilReleasedBy waits for the lock alone if the machine has no inotify instances left', async () => {
  const lock = lockForStart(folder, 'engine');
  const module = new URL('./lock-line.ts', import.meta.url).href;
  const script = `import { untilReleasedBy } from ${JSON.stringify(module)};
    const released = untilReleasedBy(${JSON.stringify(folder)}, ${process.pid}, new AbortController().signal);
    console.log('waiting');
    await released;
    console.log('released');`;
  const none = 'echo 0 >/proc/sys/user/max_inotify_instances; exec "$0" --input-type=module --eval "$1"';
  const child = spawn('unshare', ['--user', '--map-root-user', 'sh', '-ec', none, process.execPath, script]);
  const printed: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => void printed.push(text));
  await once(child.stdout, 'data');
  lock.release();
  await once(child, 'close');
  expect(printed.join('')).toBe('waiting\nreleased\n');
});

test('untilReleasedBy resolves if a failed first start has removed the lock file', async () => {
  await untilReleasedBy(folder, process.pid, new AbortController().signal);
  expect(readdirSync(folder)).toEqual([]);
});

test('untilStarted rejects when its signal aborts', async () => {
  const lock = lockForStart(folder, 'engine');
  const abort = new AbortController();
  const waits = untilStarted(folder, abort.signal);
  abort.abort(new Error('no more'));
  await expect(waits).rejects.toThrow('no more');
  lock.release();
});

test('an engine changes neither the line of another owner nor a folder that was deleted', () => {
  const line = `${process.pid + 1} engine\n`;
  writeFileSync(join(folder, 'lock'), line);
  recordStopping(folder);
  forgetOwner(folder);
  expect(readFileSync(join(folder, 'lock'), 'utf8')).toBe(line);
  rmSync(folder, { recursive: true });
  recordStopping(folder);
  forgetOwner(folder);
});
