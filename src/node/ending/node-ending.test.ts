import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerState } from '../../lifecycle/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { PressureCondition } from '../eviction/thresholds.ts';
import type { PodWorker } from '../pod/worker/worker.ts';
import { createNodeEnding, type NodeEnding } from './node-ending.ts';
import { parsePeriods } from './shutdown-periods.ts';

const run = (name: string): ContainerState => ({
  id: name,
  sandboxId: 's',
  name,
  kind: 'app',
  attempt: 0,
  state: 'running',
  createdAt: 0,
  image: 'i',
  imageId: 'i',
  backoffSeconds: 0,
});

let root: string;
let timers: VirtualTimers;
let workers: Map<string, PodWorker>;
/** The terminated Pods as `name graceSeconds`, in the order of the terminations. */
let ended: string[];
let ending: NodeEnding;
let pressures: Set<PressureCondition>;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-ending-'));
  timers = createVirtualTimers();
  workers = new Map();
  ended = [];
  pressures = new Set();
  ending = createNodeEnding({
    timers,
    log: silentLog,
    signal: new AbortController().signal,
    nodeName: 'n',
    dataDir: root,
    workers,
    events: { event: () => undefined, flushed: async () => undefined },
    podDirectory: (uid) => join(root, uid),
    isStatic: ({ metadata }) => metadata.name.startsWith('static'),
    runs: { view: (uid) => ({ sandboxes: [], containers: uid.startsWith('empty') ? [] : [run(uid)] }) },
    pressures: () => pressures,
  });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const podOf = (name: string, priority: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, uid: name, namespace: 'default' },
  spec: { containers: [], priority },
  status: { phase: 'Running', startTime: '2026-01-31T00:00:00Z' },
});
function runs(name: string, priority = 0): Pod {
  const pod = podOf(name, priority);
  const worker: Partial<PodWorker> = {
    pod: () => pod,
    end: ({ graceSeconds }) => void ended.push(`${name} ${graceSeconds}`),
  };
  workers.set(name, worker as PodWorker);
  return pod;
}
const periods = parsePeriods('--x', '0=10,100=5');

it('shutDown() ends one group after another, the next when the previous one has ended or its time is up', async () => {
  const first = runs('first');
  const slow = runs('slow');
  const late = runs('late', 100);
  const shutdown = ending.shutDown(periods);
  expect(ended).toEqual(['first 10', 'slow 10']);
  ending.cleared(first);
  timers.advance(9_999);
  await Promise.resolve();
  expect(ended).toHaveLength(2);
  timers.advance(1);
  await Promise.resolve();
  expect(ended.slice(2)).toEqual(['late 5']);
  ending.cleared(late);
  await Promise.resolve();
  // shutDown() waits for this time while the remaining containers of `slow` are killed.
  timers.advance(6_000);
  expect(await shutdown).toEqual([slow]);
});

it('shutDown() does not return a Pod that has no container', async () => {
  const slow = runs('slow');
  runs('empty');
  const late = runs('late', 100);
  const shutdown = ending.shutDown(periods);
  timers.advance(10_000);
  await Promise.resolve();
  ending.cleared(late);
  await Promise.resolve();
  timers.advance(6_000);
  expect(await shutdown).toEqual([slow]);
});

it('shutDown() does not return a Pod that has ended, although its volumes cannot be unmounted', async () => {
  const pod = runs('busy');
  const late = runs('late', 100);
  const shutdown = ending.shutDown(periods);
  pod.status = { ...pod.status, phase: 'Failed' };
  timers.advance(10_000);
  await Promise.resolve();
  ending.cleared(late);
  await Promise.resolve();
  timers.advance(6_000);
  expect(await shutdown).toEqual([]);
});

it('shutDown() does not return a Pod that ends after its grace period is up', async () => {
  const pod = runs('slow');
  const shutdown = ending.shutDown(periods);
  timers.advance(10_000);
  await Promise.resolve();
  ending.cleared(pod);
  expect(await shutdown).toEqual([]);
});

it('shutDown() neither ends nor waits for a Pod that had already ended', async () => {
  ending.cleared(runs('over'));
  expect(await ending.shutDown(periods)).toEqual([]);
  expect(ended).toEqual([]);
});

it('the node refills the ballast file when a Pod has ended, but not during a shutdown', async () => {
  const pod = runs('filler');
  expect(readdirSync(root)).toEqual([]);
  ending.cleared(pod);
  expect(readdirSync(root)).toEqual(['ballast']);
  rmSync(join(root, 'ballast'));
  const shutdown = ending.shutDown(periods);
  ending.cleared(pod);
  await shutdown;
  expect(readdirSync(root)).not.toContain('ballast');
});

it('the node ends Pods although their termination cannot be written to disk', async () => {
  writeFileSync(join(root, 'a'), 'in the way of a folder');
  const pods = [runs('a'), runs('b')];
  const shutdown = ending.shutDown(periods);
  expect(ended).toEqual(['a 10', 'b 10']);
  expect(readdirSync(join(root, 'b'))).toEqual(['node-end.json']);
  for (const pod of pods) ending.cleared(pod);
  expect(await shutdown).toEqual([]);
});

it('begun() returns the recorded termination, but not for a Pod that starts again', async () => {
  const pod = runs('a');
  const shutdown = ending.shutDown(periods);
  ending.cleared(pod);
  await shutdown;
  expect(ending.begun(pod)).toMatchObject({ reason: 'NodeShutdown', graceSeconds: 10, at: timers.now() });
  const { status: _, ...startedAgain } = pod;
  expect(ending.begun(startedAgain)).toBeUndefined();
  expect(ending.begun(pod)).toBeUndefined();
});

it('a second termination with less time shortens the first one and keeps its reason, also on disk', () => {
  const pod = runs('a');
  ending.preempt(pod);
  void ending.shutDown(periods);
  expect(ended).toEqual(['a 30', 'a 10']);
  expect(ending.begun(pod)).toMatchObject({
    reason: 'Preempted',
    message: 'Preempted in order to admit critical pod',
    graceSeconds: 10,
  });
});

it('a node under pressure refuses new Pods, but not static Pods', () => {
  const pretender = podOf('a', 0);
  pretender.metadata.annotations = { 'kubernetes.io/config.source': 'file' };
  expect(ending.refusal(pretender)).toBeUndefined();
  pressures.add('DiskPressure');
  expect(ending.refusal(pretender)?.reason).toBe('Evicted');
  expect(ending.refusal(podOf('static', 0))).toBeUndefined();
});

it('a node that shuts down refuses new Pods', async () => {
  expect([ending.isShuttingDown(), ending.refusal(podOf('a', 0))]).toEqual([false, undefined]);
  await ending.shutDown(periods);
  expect(ending.isShuttingDown()).toBe(true);
  expect(ending.refusal(podOf('a', 0))).toEqual({
    reason: 'NodeShutdown',
    message: 'Pod was rejected as the node is shutting down.',
  });
});

it('isEnding() is true for a Pod that is being deleted, and for one that the node terminates until its worker is gone', () => {
  const pod = runs('a');
  const deleted = podOf('b', 0);
  deleted.metadata.deletionTimestamp = '2026-01-31T00:00:00Z';
  expect([ending.isEnding(pod), ending.isEnding(deleted)]).toEqual([false, true]);
  ending.preempt(pod);
  expect(ending.isEnding(pod)).toBe(true);
  ending.cleared(pod);
  expect(ending.isEnding(pod)).toBe(true);
  workers.clear();
  ending.cleared(pod);
  expect(ending.isEnding(pod)).toBe(false);
});
