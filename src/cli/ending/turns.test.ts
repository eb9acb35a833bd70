import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isBeingEnded, takeTurn, untilEnded } from './turns.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-turns-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const { signal } = new AbortController();
const quiet = (): void => undefined;

test('processes share turns, and a process gets a turn of its own when the others have released theirs', async () => {
  expect(isBeingEnded(folder)).toBe(false);
  const [first, second] = [await takeTurn(folder, quiet, signal), await takeTurn(folder, quiet, signal)];
  expect(isBeingEnded(folder)).toBe(true);
  const order: string[] = [];
  const waits = Promise.withResolvers<void>();
  const third = await takeTurn(folder, () => waits.resolve(), signal);
  const owned = third.own().then(() => order.push('own turn'));
  await waits.promise;
  first.release();
  order.push('released');
  second.release();
  await owned;
  expect(order).toEqual(['released', 'own turn']);

  const said: string[] = [];
  const later = untilEnded(folder, (line) => said.push(line), signal).then(() => order.push('ended'));
  await third.share();
  await expect.poll(() => said).toHaveLength(1);
  third.release();
  await later;
  expect(said).toEqual([
    `waiting for another process of lifepod, which is starting, stopping or checking the engine of ${folder}`,
  ]);
  expect(isBeingEnded(folder)).toBe(false);
  expect(readdirSync(folder)).toEqual([]);
});

test('tryOwn takes a turn only if no other process has one, so that an engine that another process is ending is left to it', async () => {
  const [first, second] = [await takeTurn(folder, quiet, signal), await takeTurn(folder, quiet, signal)];
  expect(first.tryOwn()).toBe(false);
  second.release();
  expect(first.tryOwn()).toBe(true);
  first.release();
});

test('two processes that share turns both get a turn of their own, one after the other', async () => {
  const turns = [await takeTurn(folder, quiet, signal), await takeTurn(folder, quiet, signal)];
  let owners = 0;
  await Promise.all(
    turns.map(async (turn) => {
      await turn.own();
      owners++;
      expect(owners).toBe(1);
      owners--;
      turn.release();
    }),
  );
});

test('untilEnded waits also for a process that has lost its lock of the data folder when it wanted a turn of its own', async () => {
  mkdirSync(join(folder, 'store'));
  const [first, second] = [await takeTurn(folder, quiet, signal), await takeTurn(folder, quiet, signal)];
  expect(first.tryOwn()).toBe(false);
  second.release();
  expect(isBeingEnded(folder)).toBe(true);
  const order: string[] = [];
  const waits = Promise.withResolvers<void>();
  const ended = untilEnded(folder, () => waits.resolve(), signal).then(() => order.push('ended'));
  await waits.promise;
  await first.own();
  order.push('turn of its own');
  first.release();
  await ended;
  expect(order).toEqual(['turn of its own', 'ended']);
  expect(isBeingEnded(folder)).toBe(false);
});

test('a session that starts is not taken for a process that ends the engine', async () => {
  const starting = spawn('flock', [folder, 'sh', '-c', 'echo locked; sleep 0.1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(starting.stdout, 'data');
  expect(isBeingEnded(folder)).toBe(false);
});

test('an abort ends the wait for a turn, with the reason of the signal', async () => {
  const other = await takeTurn(folder, quiet, signal);
  await other.own();
  const interrupted = new AbortController();
  const reason = new Error('interrupted');
  await expect(takeTurn(folder, () => interrupted.abort(reason), interrupted.signal)).rejects.toBe(reason);
  other.release();
});

test('all turns are free if there is no folder, and no folder is created', async () => {
  const missing = join(folder, 'none');
  const [first, second] = [await takeTurn(missing, quiet, signal), await takeTurn(missing, quiet, signal)];
  await first.own();
  await second.own();
  expect([isBeingEnded(missing), existsSync(missing)]).toEqual([false, false]);
});
