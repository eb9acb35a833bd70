import { EventEmitter, once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import { type Eviction, startEviction } from './eviction.ts';
import type { PressureCondition, Signal, Threshold } from './thresholds.ts';

const MIB = 2 ** 20;
let root: string;
let stop: AbortController;
let timers: VirtualTimers;
let pods: Pod[];
let due: Threshold[];
let conditions: Set<PressureCondition>;
/** The evicted Pods as `name graceSeconds`, in the order of their evictions. */
let ended: string[];
let graceOf: Map<string, number>;
let withContainers: Set<string>;
let staticNames: Set<string>;
/** Whether the timer for the next check is set, which means that no check is running. */
let armed: boolean;
let changes: EventEmitter;
/** The simulated runtime awaits this function before each answer. */
let runtime: () => Promise<void>;
let freeDisk: () => Promise<void>;
let eviction: Eviction;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-eviction-'));
  stop = new AbortController();
  timers = createVirtualTimers();
  pods = [];
  due = [];
  conditions = new Set();
  ended = [];
  graceOf = new Map();
  withContainers = new Set();
  staticNames = new Set();
  armed = false;
  changes = new EventEmitter();
  runtime = async () => undefined;
  freeDisk = async () => undefined;
});
afterEach(() => {
  stop.abort();
  rmSync(root, { recursive: true, force: true });
});

const podOf = (name: string, spec: Partial<PodSpec> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, uid: name, namespace: 'default' },
  spec: { containers: [{ name: 'app', image: 'i' }], ...spec },
});
const threshold = (signal: Signal, hard = true): Threshold => ({
  signal,
  value: { count: 100 * MIB },
  graceSeconds: 0,
  hard,
});
/** Pods whose names are later in the alphabet use more memory. */
const usageOf = ({ metadata: { name } }: Pod): ContainerUsage => ({
  podUid: name,
  id: name,
  name: 'app',
  attempt: 0,
  at: 0,
  cpuNanoSeconds: 0,
  workingSetBytes: name.charCodeAt(0) * MIB,
});
const volumeOf = (pod: Pod, volume: string): string => join(root, pod.metadata.name, volume);
/** Returns a Pod with a file of `mebibytes` MiB in a volume with a sizeLimit of 1 MiB. */
function filled(name: string, mebibytes: number): Pod {
  const pod = podOf(name, { volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }] });
  mkdirSync(volumeOf(pod, 'v'), { recursive: true });
  writeFileSync(join(volumeOf(pod, 'v'), 'file'), new Uint8Array(mebibytes * MIB));
  return pod;
}

function start(): void {
  eviction = startEviction({
    pressure: {
      config: { thresholds: [], transitionMillis: 0, maxPodGraceSeconds: 20 },
      folders: { dataDir: root },
      conditions: () => conditions,
      onChange: () => undefined,
      async look() {
        return { due, observations: {} };
      },
    },
    usage: {
      async containerUsage() {
        await runtime();
        return pods.map(usageOf);
      },
      volumePath: volumeOf,
      logPath: (pod) => volumeOf(pod, 'logs'),
      podPath: (pod) => volumeOf(pod, 'own'),
    },
    timers: {
      now: timers.now,
      at(time, callback) {
        armed = true;
        changes.emit('change');
        return timers.at(time, () => {
          armed = false;
          callback();
        });
      },
    },
    log: silentLog,
    signal: stop.signal,
    pods: () => pods,
    isStatic: ({ metadata }) => staticNames.has(metadata.name),
    endsWithinSeconds: ({ metadata }) => graceOf.get(metadata.name),
    hasContainers: (uid) => withContainers.has(uid),
    end({ metadata: { name } }, { graceSeconds }) {
      ended.push(`${name} ${graceSeconds}`);
      graceOf.set(name, graceSeconds);
      changes.emit('change');
    },
    nodeEvent: () => undefined,
    freeDisk: () => freeDisk(),
  });
}
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await once(changes, 'change');
};
const pass = async (millis: number): Promise<void> => {
  await until(() => armed);
  timers.advance(millis);
  await until(() => armed);
};

it('eviction evicts every Pod that exceeds a disk limit, and no other Pod', async () => {
  pods = [filled('a', 3), filled('b', 0), filled('c', 2)];
  start();
  await until(() => ended.length === 2);
  expect(ended).toEqual(['a 0', 'c 0']);
});

it('eviction evicts a Pod that exceeds a disk limit although the files of another Pod cannot be read', async () => {
  const broken = podOf('a', { volumes: [{ name: 'v\0', emptyDir: { sizeLimit: '1Mi' } }] });
  pods = [broken, filled('b', 2)];
  start();
  await until(() => ended.length === 1);
  expect(ended).toEqual(['b 0']);
});

it('eviction for memory does not wait for a walk through folders', async () => {
  const walked = Promise.withResolvers<void>();
  pods = [filled('a', 2), podOf('b')];
  let asked = 0;
  // The check of the disk limits makes the first query of the runtime, and then walks through the folders.
  runtime = () => (asked++ === 0 ? walked.promise : Promise.resolve());
  due = [threshold('memory.available')];
  start();
  await until(() => ended.length === 1);
  expect(ended).toEqual(['b 0']);
  walked.resolve();
  await until(() => ended.length === 2);
  expect(ended).toEqual(['b 0', 'a 0']);
});

it('eviction checks again 1 s after an evicted Pod is cleared, and evicts the next Pod', async () => {
  pods = [podOf('a'), podOf('b')];
  due = [threshold('memory.available')];
  start();
  await until(() => ended.length === 1);
  expect(ended).toEqual(['b 0']);
  eviction.cleared('b');
  await pass(1_000);
  await until(() => ended.length === 2);
  expect(ended).toEqual(['b 0', 'a 0']);
});

it('eviction evicts the next Pod if an evicted Pod does not end within 30 s, and does not evict that Pod again', async () => {
  pods = [podOf('a'), podOf('b')];
  due = [threshold('memory.available')];
  start();
  await until(() => ended.length === 1);
  await pass(10_000);
  await pass(10_000);
  expect(ended).toEqual(['b 0']);
  await pass(10_000);
  await until(() => ended.length === 2);
  expect(ended).toEqual(['b 0', 'a 0']);
});

it('a hard threshold shortens the grace period that a soft one granted', async () => {
  pods = [podOf('a')];
  due = [threshold('memory.available', false)];
  start();
  await until(() => ended.length === 1);
  due = [threshold('memory.available')];
  await pass(10_000);
  await until(() => ended.length === 2);
  expect(ended).toEqual(['a 20', 'a 0']);
});

it('eviction under disk pressure waits until the containers of the evicted Pod are removed', async () => {
  pods = [podOf('a'), podOf('b')];
  for (const pod of pods) mkdirSync(volumeOf(pod, 'logs'), { recursive: true });
  due = [threshold('nodefs.available')];
  start();
  await until(() => ended.length === 1);
  const [first = ''] = ended;
  const uid = first.split(' ')[0] ?? '';
  withContainers.add(uid);
  eviction.cleared(uid);
  await pass(10_000);
  expect(ended).toHaveLength(1);
  withContainers.delete(uid);
  eviction.emptied(uid);
  await pass(1_000);
  await until(() => ended.length === 2);
});

it('eviction under disk pressure evicts no Pod if the removal of containers and images frees enough', async () => {
  pods = [podOf('a')];
  due = [threshold('nodefs.available')];
  const freed = Promise.withResolvers<void>();
  freeDisk = async () => {
    due = [];
    freed.resolve();
  };
  start();
  await freed.promise;
  await pass(1000);
  expect(ended).toEqual([]);
});

it('eviction under memory pressure frees no disk space', async () => {
  pods = [podOf('a')];
  due = [threshold('memory.available')];
  let requests = 0;
  freeDisk = async () => void requests++;
  start();
  await until(() => ended.length === 1);
  expect([ended, requests]).toEqual([['a 0'], 0]);
});

it('eviction under disk pressure evicts a Pod even if the removal of containers and images fails', async () => {
  pods = [podOf('a')];
  due = [threshold('nodefs.available')];
  freeDisk = () => Promise.reject(new Error('the runtime does not respond'));
  start();
  await until(() => ended.length === 1);
  expect(ended).toEqual(['a 0']);
});

it('eviction spares static Pods, and an annotation does not make a Pod static', async () => {
  const pretender = podOf('a');
  pretender.metadata.annotations = { 'kubernetes.io/config.source': 'file' };
  pods = [pretender, podOf('z')];
  staticNames.add('z');
  due = [threshold('memory.available')];
  start();
  await until(() => ended.length === 1);
  expect(ended).toEqual(['a 0']);
});
