import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { PodWorker } from '../pod/worker/worker.ts';
import { nodeEndFile, readNodeEnd } from './ending-files.ts';
import { createNodeEnds, type NodeEnds } from './pod-terminations.ts';

const START = Date.UTC(2026, 0, 31);
let root: string;
let timers: VirtualTimers;
let ended: number[];
let warnings: string[];
let workers: Map<string, PodWorker>;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-ends-'));
  timers = createVirtualTimers(START);
  [ended, warnings] = [[], []];
  const worker: Partial<PodWorker> = { end: ({ graceSeconds }) => void ended.push(graceSeconds) };
  workers = new Map([['u1', worker as PodWorker]]);
});
afterEach(() => rmSync(root, { recursive: true }));

const pod = podOf({}, { phase: 'Running', startTime: '2026-01-31T00:00:00Z' });
const by = (graceSeconds: number) => ({ reason: 'Preempted', message: 'm', graceSeconds }) as const;
const folder = (uid = 'u1'): string => join(root, uid);
const endsWith = (clock = timers): NodeEnds =>
  createNodeEnds({
    timers: clock,
    log: { ...silentLog, warn: (message) => void warnings.push(message) },
    podDirectory: folder,
    workers,
  });

test('the termination of a Pod is remembered and recorded, and only a shorter grace period changes it', () => {
  const ends = endsWith();
  ends.end(pod, by(30));
  const first = { ...by(30), at: START };
  expect([ends.get('u1'), readNodeEnd(folder())]).toEqual([first, first]);
  // end() with an equal or longer grace period does not write the record again.
  rmSync(nodeEndFile(folder()));
  timers.advance(1000);
  for (const graceSeconds of [30, 31]) ends.end(pod, by(graceSeconds));
  expect([ends.get('u1'), existsSync(nodeEndFile(folder()))]).toEqual([first, false]);
  ends.end(pod, by(29));
  const second = { ...by(29), at: START + 1000 };
  expect([ends.get('u1'), readNodeEnd(folder())]).toEqual([second, second]);
  expect(ended).toEqual([30, 30, 31, 29]);
  ends.forget('u1');
  expect(ends.get('u1')).toBeUndefined();
});

test('a Pod without a worker is not terminated', () => {
  workers.clear();
  const ends = endsWith();
  ends.end(pod, by(30));
  expect([ends.get('u1'), existsSync(folder())]).toEqual([undefined, false]);
});

test('a Pod is terminated even if its termination cannot be recorded', () => {
  writeFileSync(folder(), '');
  const ends = endsWith();
  ends.end(pod, by(30));
  expect([ended, warnings]).toEqual([[30], ['cannot record that a Pod is being terminated']]);
  expect(ends.get('u1')).toMatchObject(by(30));
});

test('restore() returns the recorded termination, which cannot be in the future, and remembers it', () => {
  endsWith().end(pod, by(30));
  const later = endsWith(createVirtualTimers(START + 5000));
  expect(later.restore(pod)).toEqual({ ...by(30), at: START });
  const earlier = endsWith(createVirtualTimers(START - 5000));
  expect(earlier.restore(pod)).toEqual({ ...by(30), at: START - 5000 });
  expect(earlier.get('u1')).toEqual({ ...by(30), at: START - 5000 });
  expect(earlier.restore({ ...pod, metadata: { ...pod.metadata, uid: 'u2' } })).toBeUndefined();
  expect(earlier.get('u2')).toBeUndefined();
});

test('restore() deletes the record of a Pod that starts again', () => {
  endsWith().end(pod, by(30));
  expect(readFileSync(nodeEndFile(folder()), 'utf8')).toContain('Preempted');
  const { startTime: _, ...status } = pod.status ?? {};
  const ends = endsWith();
  expect(ends.restore({ ...pod, status })).toBeUndefined();
  expect([ends.get('u1'), existsSync(nodeEndFile(folder()))]).toEqual([undefined, false]);
  // The folder of a Pod that was never terminated does not exist.
  expect(ends.restore({ ...pod, metadata: { ...pod.metadata, uid: 'u2' }, status })).toBeUndefined();
});
