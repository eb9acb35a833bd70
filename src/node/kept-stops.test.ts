/** What is kept of why containers are ended. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { silentLog } from '../client/testing.ts';
import { createKeptStops, type KeptStops } from './kept-stops.ts';

let root: string;
let now: number;
let kept: KeptStops;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-stops-'));
  now = 100_000;
  kept = createKeptStops((uid) => join(root, uid), { timers: { now: () => now }, log: silentLog });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const pod: Pod = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', uid: 'a' } },
  status: { startTime: '2026-01-31T00:00:00Z' },
};
const stop = { message: 'Container app failed liveness probe', at: 100_000, deadline: 130_000, restart: true };

it('the next agent reads what the one before has kept', () => {
  mkdirSync(join(root, 'a'));
  expect(kept.read(pod)).toEqual({});
  kept.keep(pod, { one: stop });
  kept.keep(pod, { one: stop, two: { ...stop, replaced: true } });
  now += 10_000;
  expect(kept.read(pod)).toEqual({ one: stop, two: { ...stop, replaced: true } });
  expect(readdirSync(join(root, 'a'))).toEqual(['stops.json']);
});

it('a clock that was set back gives no more time than there was', () => {
  mkdirSync(join(root, 'a'));
  kept.keep(pod, { one: stop });
  now = 20_000;
  expect(kept.read(pod)).toEqual({ one: { ...stop, at: 20_000, deadline: 50_000 } });
});

it('a file that cannot be written or read keeps nothing from ending, nor from starting', () => {
  kept.keep(pod, { one: stop });
  expect(readdirSync(root)).toEqual([]);
  mkdirSync(join(root, 'a'));
  writeFileSync(join(root, 'a', 'stops.json'), '{"at":');
  expect(kept.read(pod)).toEqual({});
});
