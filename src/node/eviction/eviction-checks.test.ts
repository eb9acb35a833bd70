import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { podOf as fixtureOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { type Eviction, startEviction } from './eviction.ts';
import type { Signal, Threshold } from './thresholds.ts';

let root: string;
let stop: AbortController;
let timers: VirtualTimers;
let pods: Pod[];
let look: () => { due: Threshold[]; changesAt?: number };
let counts: { looks: number; measurements: number; freed: number };
let gate: Promise<void>;
let withContainers: Set<string>;
let ended: string[];
let events: string[];
let warnings: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-eviction-'));
  stop = new AbortController();
  timers = createVirtualTimers();
  look = () => ({ due: [] });
  counts = { looks: 0, measurements: 0, freed: 0 };
  gate = Promise.resolve();
  withContainers = new Set();
  [pods, ended, events, warnings] = [[], [], [], []];
});
afterEach(() => {
  stop.abort();
  rmSync(root, { recursive: true });
});

const podOf = (name: string, spec: Partial<PodSpec> = {}): Pod => {
  const pod = fixtureOf(spec);
  return { ...pod, metadata: { ...pod.metadata, name, uid: name } };
};
const limited = (name: string, storage: string): Pod =>
  podOf(name, { containers: [{ name: 'app', image: 'i', resources: { limits: { 'ephemeral-storage': storage } } }] });
function makeDue(signal: Signal, changesIn?: number): void {
  const due: Threshold[] = [{ signal, value: { count: 1 }, graceSeconds: 0, hard: true }];
  look = () => ({ due, ...(changesIn === undefined ? {} : { changesAt: timers.now() + changesIn }) });
}

function start(): Eviction {
  return startEviction({
    pressure: {
      config: { thresholds: [], transitionMillis: 0, maxPodGraceSeconds: 20 },
      folders: { dataDir: root },
      conditions: () => new Set(),
      onChange: () => undefined,
      async look() {
        counts.looks++;
        return { observations: {}, ...look() };
      },
    },
    usage: {
      async containerUsage() {
        counts.measurements++;
        await gate;
        return pods.map(({ metadata: { name } }) => ({
          podUid: name,
          id: name,
          name: 'app',
          attempt: 0,
          at: 0,
          cpuNanoSeconds: 0,
          workingSetBytes: name.charCodeAt(0),
          rootFs: { usedBytes: 5000, inodesUsed: 1 } as never,
        }));
      },
      volumePath: () => root,
      logPath: () => join(root, 'logs'),
      podPath: () => join(root, 'own'),
    },
    timers,
    log: { ...silentLog, warn: (message) => void warnings.push(message) },
    signal: stop.signal,
    pods: () => pods,
    isStatic: () => false,
    endsWithinSeconds: ({ metadata }) => (ended.includes(metadata.name) ? 0 : undefined),
    hasContainers: (uid) => withContainers.has(uid),
    end: ({ metadata }) => void ended.push(metadata.name),
    nodeEvent: (reason) => void events.push(reason),
    freeDisk: async () => void counts.freed++,
  });
}
/** Resolves once the checks that do not read the disk have ended. */
async function pass(millis: number): Promise<void> {
  await timers.run(() => false, timers.now() + millis);
}

test('the node is checked every 10 s until the signal aborts', async () => {
  start();
  await pass(9_999);
  expect(counts.looks).toBe(1);
  await pass(1);
  expect(counts.looks).toBe(2);
  expect(warnings).toEqual([]);
  stop.abort();
  await pass(60_000);
  expect(counts.looks).toBe(2);
});

test('a failed check is logged, but not after the signal has aborted', async () => {
  look = () => {
    throw new Error('no such file');
  };
  start();
  await pass(1);
  expect(warnings).toEqual(['cannot measure the available resources of the node']);
  look = () => {
    stop.abort();
    throw new Error('no such file');
  };
  await pass(10_000);
  expect([counts.looks, warnings.length]).toEqual([2, 1]);
  await pass(60_000);
  expect(counts.looks).toBe(2);
});

test.each<[Signal, (eviction: Eviction) => void]>([
  ['memory.available', (eviction) => eviction.cleared('b')],
  ['nodefs.available', (eviction) => eviction.emptied('b')],
])('the next Pod is evicted for %s 1 s after the resources of the previous one are free', async (signal, free) => {
  pods = [podOf('b', { priority: 0 }), podOf('a', { priority: 1 })];
  makeDue(signal);
  withContainers.add('b');
  const eviction = start();
  await vi.waitFor(() => expect(ended).toEqual(['b']));
  await pass(1);
  if (signal !== 'memory.available') eviction.cleared('b');
  withContainers.clear();
  const before = counts.looks;
  free(eviction);
  await pass(999);
  expect(counts.looks).toBe(before);
  await pass(1);
  await vi.waitFor(() => expect(ended).toEqual(['b', 'a']));
});

test('a node that waits for an evicted Pod records no further Event and frees no disk space', async () => {
  pods = [podOf('a'), podOf('b')];
  makeDue('nodefs.available');
  start();
  await vi.waitFor(() => expect(ended).toHaveLength(1));
  await pass(20_000);
  expect([events, counts.freed]).toEqual([['EvictionThresholdMet'], 1]);
});

test('the disk is not reclaimed in a check that has evicted a Pod above its disk limit', async () => {
  pods = [limited('a', '1Ki'), podOf('b')];
  makeDue('nodefs.available');
  start();
  await vi.waitFor(() => expect(ended).toEqual(['a']));
  await pass(1);
  expect([events, counts.freed]).toEqual([[], 0]);
});

test('only one walk through folders runs at a time, and after a walk the disk rests for as long as the walk', async () => {
  pods = [limited('a', '1Gi')];
  const walked = Promise.withResolvers<void>();
  gate = walked.promise;
  start();
  await pass(15_000);
  expect([counts.looks, counts.measurements]).toEqual([2, 1]);
  // This walk fails before it reads the disk, so it ends without a wait in real time.
  walked.reject(new Error('the runtime does not respond'));
  await pass(5_000);
  expect([counts.looks, counts.measurements]).toEqual([3, 1]);
  await pass(10_000);
  expect([counts.looks, counts.measurements]).toEqual([4, 2]);
  await pass(10_000);
  expect(counts.measurements).toBe(3);
});

test('a check begins only after the previous one has ended, even if it is due earlier', async () => {
  pods = [podOf('a')];
  const measured = Promise.withResolvers<void>();
  gate = measured.promise;
  makeDue('memory.available', 1000);
  start();
  await pass(5_000);
  expect([counts.looks, counts.measurements]).toEqual([1, 1]);
  measured.resolve();
  await pass(0);
  expect(ended).toEqual(['a']);
  await pass(1000);
  expect(counts.looks).toBeGreaterThan(2);
});
