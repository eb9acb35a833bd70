import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createKeptJournal, type KeptJournal } from './journal-file.ts';

let root: string;
let now: number;
let kept: KeptJournal;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-journal-'));
  now = 100_000;
  kept = createKeptJournal((uid) => join(root, uid), { timers: { now: () => now }, log: silentLog });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', uid: 'a' },
  status: { startTime: '2026-01-31T00:00:00Z' },
};
const stop = { message: 'Container app failed liveness probe', at: 100_000, deadline: 130_000, restart: true };
const termination = { reason: 'Deleted', startedAt: 100_000, deadline: 130_000, preExitDeadline: 130_000 } as const;

it('a new agent reads the journal that the previous agent wrote', () => {
  mkdirSync(join(root, 'a'));
  expect(kept.read(pod)).toEqual({ stops: {} });
  kept.keep(pod, { stops: { one: stop } });
  const hooks = { 'one/preStop': { failure: 'exit code 1' } };
  kept.keep(pod, { stops: { one: stop, two: { ...stop, replaced: true } }, preStops: hooks, termination });
  now += 10_000;
  const stops = { one: stop, two: { ...stop, replaced: true } };
  expect(kept.read(pod)).toEqual({ stops, preStops: hooks, termination });
  expect(readdirSync(join(root, 'a'))).toEqual(['journal.json']);
});

it('a journal file grants no additional time after the clock was set back', () => {
  mkdirSync(join(root, 'a'));
  const turn = { entry: 'clean', since: 101_000 };
  kept.keep(pod, { stops: { one: stop }, termination: { ...termination, outagesCountedUntil: 110_000, turn } });
  now = 20_000;
  const times = { startedAt: 20_000, deadline: 50_000, preExitDeadline: 50_000, outagesCountedUntil: 30_000 };
  expect(kept.read(pod)).toEqual({
    stops: { one: { ...stop, at: 20_000, deadline: 50_000 } },
    termination: { ...termination, ...times, turn: { ...turn, since: 21_000 } },
  });
});

it('a journal file that cannot be written or read is ignored', () => {
  kept.keep(pod, { stops: { one: stop } });
  expect(readdirSync(root)).toEqual([]);
  mkdirSync(join(root, 'a'));
  writeFileSync(join(root, 'a', 'journal.json'), '{"at":');
  expect(kept.read(pod)).toEqual({ stops: {} });
});

it('the journal of an earlier life is deleted when a Pod starts again under its UID', () => {
  mkdirSync(join(root, 'a'));
  kept.keep(pod, { stops: { one: stop }, termination });
  expect(kept.read({ ...pod, status: {} })).toEqual({ stops: {} });
  expect(kept.read(pod)).toEqual({ stops: {} });
});
