import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../platform/virtual-timers.ts';
import { startOrphanRemoval } from './orphans.ts';

let root: string;
let stop: AbortController;
let timers: VirtualTimers;
let known: Set<string>;
let busy: Set<string>;
const podsRoot = (): string => join(root, 'pods');
const logsRoot = (): string => join(root, 'logs');
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-orphans-'));
  for (const folder of [podsRoot(), logsRoot()]) mkdirSync(folder);
  stop = new AbortController();
  timers = createVirtualTimers();
  known = new Set(['alive']);
  busy = new Set();
});
afterEach(() => {
  stop.abort();
  rmSync(root, { recursive: true, force: true });
});

const start = (): Promise<void> =>
  startOrphanRemoval({
    podsRoot: podsRoot(),
    logsRoot: logsRoot(),
    isKnown: (uid) => known.has(uid),
    removePod: async (uid) => {
      if (busy.has(uid)) throw new Error('busy');
      rmSync(join(podsRoot(), uid), { recursive: true });
    },
    timers,
    log: silentLog,
    signal: stop.signal,
  });
const left = (): string[] => [...readdirSync(podsRoot()), ...readdirSync(logsRoot())].sort();
const until = async (satisfies: () => boolean): Promise<void> => {
  const watchers = [watch(podsRoot()), watch(logsRoot())];
  while (!satisfies()) await Promise.race(watchers.map((watcher) => once(watcher, 'change')));
  for (const watcher of watchers) watcher.close();
};

it('the removal of orphans removes only the folders of Pods that no longer exist', async () => {
  for (const uid of ['alive', 'gone']) {
    mkdirSync(join(podsRoot(), uid, 'volumes'), { recursive: true });
    mkdirSync(join(logsRoot(), `default_p_${uid}`, 'app'), { recursive: true });
  }
  mkdirSync(join(podsRoot(), '.hidden'));
  mkdirSync(join(logsRoot(), 'notes'));
  writeFileSync(join(logsRoot(), 'a_b_c_d'), '');
  await start();
  expect(left()).toEqual(['.hidden', 'a_b_c_d', 'alive', 'default_p_alive', 'notes']);
});

it('the removal of orphans removes a folder of an unknown Pod that appears later', async () => {
  await start();
  mkdirSync(join(podsRoot(), 'alive'));
  mkdirSync(join(podsRoot(), 'late'));
  mkdirSync(join(logsRoot(), 'default_p_late'));
  await until(() => left().length === 1);
  expect(left()).toEqual(['alive']);
});

it('the removal of orphans is retried if it failed because a mount was busy', async () => {
  mkdirSync(join(podsRoot(), 'gone'));
  busy.add('gone');
  await start();
  expect(left()).toEqual(['gone']);
  busy.clear();
  timers.advance(30_000);
  await until(() => left().length === 0);
});
