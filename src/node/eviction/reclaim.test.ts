import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { podOf as fixtureOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import { createEvictedPods } from './evicted-pods.ts';
import { createRelief, type Relief, type ReliefOptions } from './reclaim.ts';
import type { Signal, Threshold } from './thresholds.ts';

let root: string;
/** The evictions as `name graceSeconds`, Events on the Node, warnings, and the other calls, in their order. */
let calls: string[];
let pods: Pod[];
let due: Threshold[];
/** The volumes of the Pods with these names cannot be read. */
let unreadable: string[];
let usage: (pod: Pod) => Partial<ContainerUsage>;
let onMeasure: () => void;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-reclaim-'));
  [calls, pods, due, unreadable] = [[], [], [], []];
  usage = () => ({});
  onMeasure = () => undefined;
});
afterEach(() => rmSync(root, { recursive: true }));

const podOf = (name: string, spec: Partial<PodSpec> = {}, phase = 'Running'): Pod => {
  const pod = fixtureOf(spec, { phase });
  return { ...pod, metadata: { ...pod.metadata, name, uid: name } };
};
const limited = (name: string): Pod =>
  podOf(name, { containers: [{ name: 'app', image: 'i', resources: { limits: { 'ephemeral-storage': '1Ki' } } }] });
const thresholdOf = (signal: Signal, hard = true): Threshold => ({
  signal,
  value: { count: 1 },
  graceSeconds: 0,
  hard,
});
const UNREADABLE = '\0';

function reliefWith(more: Partial<ReliefOptions> = {}): Relief {
  const options: ReliefOptions = {
    pressure: {
      config: { thresholds: [], transitionMillis: 0, maxPodGraceSeconds: 20 },
      folders: { dataDir: root },
      async look() {
        calls.push('look');
        return { due, observations: {} } as never;
      },
    },
    usage: {
      async containerUsage() {
        onMeasure();
        return pods.map((pod) => {
          const { name } = pod.metadata;
          const use = { podUid: name, id: name, name: 'app', attempt: 0, at: 0, cpuNanoSeconds: 0, workingSetBytes: 0 };
          return { ...use, ...usage(pod) };
        });
      },
      volumePath: () => root,
      logPath: () => root,
      podPath: ({ metadata }) => (unreadable.includes(metadata.name) ? UNREADABLE : join(root, metadata.name)),
    },
    log: { ...silentLog, warn: (message) => void calls.push(message) },
    signal: new AbortController().signal,
    pods: () => pods,
    isStatic: () => false,
    endsWithinSeconds: () => undefined,
    end: ({ metadata }, { graceSeconds }) => void calls.push(`${metadata.name} ${graceSeconds}`),
    nodeEvent: (reason, message) => void calls.push(`${reason}: ${message}`),
    freeDisk: async () => void calls.push('free'),
    ...more,
  };
  return createRelief(
    options,
    createEvictedPods(createVirtualTimers(), () => false),
  );
}
const evictions = (): string[] => calls.filter((call) => /^\S+ \d+$/.test(call));

test('Pods above a disk limit are evicted, except Pods that have ended, are critical, or end without grace', async () => {
  pods = [
    limited('within'),
    limited('above'),
    { ...limited('ended'), status: { phase: 'Failed' } },
    podOf('critical', { ...limited('').spec, priority: 2_000_000_000 }),
    limited('ending-later'),
    limited('ending'),
    podOf('unlimited'),
  ];
  usage = ({ metadata: { name } }) => ({ rootFs: { usedBytes: name === 'within' ? 0 : 5000, inodesUsed: 0 } as never });
  const endsWithinSeconds = ({ metadata: { name } }: Pod): number | undefined =>
    ({ ending: 0, 'ending-later': 1 })[name];
  expect(await reliefWith({ endsWithinSeconds }).enforceLimits()).toBe(true);
  expect(evictions()).toEqual(['above 0', 'ending-later 0']);
  pods = [limited('within')];
  expect(await reliefWith().enforceLimits()).toBe(false);
});

test('the usage is not measured if no Pod has a disk limit', async () => {
  pods = [podOf('a')];
  onMeasure = () => calls.push('measure');
  expect(await reliefWith().enforceLimits()).toBe(false);
  expect(calls).toEqual([]);
});

test.each<[string, Partial<PodSpec>, boolean, number]>([
  ['the grace period of the Pod', { terminationGracePeriodSeconds: 5 }, false, 5],
  ['the maximum of the node', { terminationGracePeriodSeconds: 50 }, false, 20],
  ['the maximum of the node for a Pod without one', {}, false, 20],
  ['no grace period for a hard threshold', { terminationGracePeriodSeconds: 5 }, true, 0],
])('a Pod is evicted with %s', async (_, spec, hard, graceSeconds) => {
  pods = [podOf('a', spec)];
  due = [thresholdOf('memory.available', hard)];
  await reliefWith().reclaim(due[0] as Threshold);
  expect(calls).toEqual([
    'EvictionThresholdMet: Attempting to reclaim memory',
    'look',
    'evicting a Pod',
    `a ${graceSeconds}`,
  ]);
});

test('the disk is freed only for a threshold of the disk with the images, and the threshold is checked again', async () => {
  pods = [podOf('a')];
  // /proc is on another file system than the temporary folder.
  const separate = { dataDir: root, imageDir: '/proc' };
  for (const [signal, folders, frees] of [
    ['nodefs.available', { dataDir: root }, true],
    ['nodefs.available', separate, false],
    ['imagefs.available', separate, true],
    ['pid.available', { dataDir: root }, false],
  ] as const) {
    due = [thresholdOf(signal)];
    calls = [];
    const pressure = {
      config: { thresholds: [], transitionMillis: 0, maxPodGraceSeconds: 20 },
      folders,
      look: async () => ({ due, observations: {} }) as never,
    };
    await reliefWith({ pressure }).reclaim(due[0] as Threshold);
    expect([signal, calls.includes('free')]).toEqual([signal, frees]);
    expect(evictions()).toEqual(['a 0']);
  }
  due = [thresholdOf('nodefs.available')];
  calls = [];
  const freeDisk = async (): Promise<void> => {
    due = [];
  };
  await reliefWith({ freeDisk }).reclaim(thresholdOf('nodefs.available'));
  expect(calls).toEqual(['EvictionThresholdMet: Attempting to reclaim ephemeral-storage', 'look']);
});

test('no Pod is evicted if the threshold is no longer met after the measurement, or an evicted Pod has not ended', async () => {
  pods = [podOf('a'), podOf('b')];
  const threshold = thresholdOf('memory.available');
  onMeasure = () => {
    due = [];
  };
  await reliefWith().reclaim(threshold);
  expect(evictions()).toEqual([]);
  onMeasure = () => undefined;
  due = [threshold];
  const relief = reliefWith();
  await relief.reclaim(threshold);
  await relief.reclaim(threshold);
  expect(evictions()).toEqual(['a 0']);
});

test('a Pod that ends during the measurement is not evicted, and a node without other Pods logs this', async () => {
  const threshold = thresholdOf('memory.available');
  due = [threshold];
  pods = [podOf('a'), podOf('b')];
  onMeasure = () => {
    pods = [podOf('a', {}, 'Failed'), podOf('b')];
  };
  await reliefWith().reclaim(threshold);
  expect(evictions()).toEqual(['b 0']);
  pods = [podOf('a', {}, 'Failed')];
  calls = [];
  await reliefWith().reclaim(threshold);
  expect(calls.at(-1)).toBe('no Pod is left to evict');
});

test('the unreadable files of a Pod are logged once, and again for a Pod that returned after it was gone', async () => {
  mkdirSync(join(root, 'a'));
  unreadable = ['a', 'b'];
  const relief = reliefWith();
  const logged = async (...names: string[]): Promise<number> => {
    pods = names.map(limited);
    calls = [];
    await relief.enforceLimits();
    return calls.filter((call) => call === 'some files of a Pod cannot be read').length;
  };
  expect(await logged('a', 'b')).toBe(2);
  expect(await logged('a', 'b')).toBe(0);
  expect(await logged('b')).toBe(0);
  unreadable.push('c');
  expect(await logged('b', 'c')).toBe(1);
  expect(await logged('a', 'b', 'c')).toBe(1);
});
