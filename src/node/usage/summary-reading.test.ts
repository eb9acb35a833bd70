import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import type { UsedContainer, UsedPod } from './node-pods.ts';
import type { Sample } from './sampler.ts';
import { readSummaryFacts, type SummaryPorts } from './summary-reading.ts';

const { signal } = new AbortController();
/** The first word in the /proc/PID/cgroup file of this process. As a container ID, it stands for a container with a process. */
const RUNNING = readFileSync('/proc/self/cgroup', 'utf8').split(/[^A-Za-z0-9]+/)[0] ?? '';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-summary-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const usageOf = (id: string, at: number, cpuNanoSeconds: number): ContainerUsage => ({
  ...({ podUid: 'u1', id, name: id, attempt: 0, workingSetBytes: 1 } as const),
  at,
  cpuNanoSeconds,
});
const sample = (at: number, containers: ContainerUsage[]): Sample => ({
  at,
  machine: {
    at,
    cpuNanoSeconds: at * 3e6,
    bootedAt: 0,
    memory: { usageBytes: 4, workingSetBytes: 3, availableBytes: 2, rssBytes: 1 },
  },
  containers,
});
const container = (name: string, usage: ContainerUsage, startedAt?: number): UsedContainer => ({
  name,
  image: 'i',
  startedAt,
  usage,
});
const used = (pod: Pod, ...containers: UsedContainer[]): UsedPod => ({
  pod,
  logDirectory: join(dataDir, 'logs'),
  containers,
  sandboxId: 's',
});
function read(pods: readonly UsedPod[], more: Partial<SummaryPorts> = {}) {
  const usages = pods.flatMap(({ containers }) => containers.map(({ usage }) => usage));
  const pair = { first: sample(1000, [usageOf('known', 1000, 5e9)]), last: sample(3000, usages) };
  const ports: SummaryPorts = {
    dataDir,
    imageFolder: undefined,
    podFolder: (uid) => join(dataDir, 'pods', uid),
    networks: { keep: () => undefined, interfaces: async () => undefined },
    volumes: { read: async () => [], claims: async () => [] },
    ...more,
  };
  return readSummaryFacts(pair, pods, ports, signal);
}

test('the facts about the machine are those of the last sample, with the rate between the samples', async () => {
  const { machine, cpuNanoCores, processes, pods, interfaces } = await read([]);
  expect(machine).toEqual(sample(3000, []).machine);
  expect(cpuNanoCores).toBe(3e9);
  expect(processes.running).toBeGreaterThan(0);
  expect(processes.maxPid).toBeGreaterThan(0);
  expect(Array.isArray(interfaces)).toBe(true);
  expect(pods).toEqual([]);
});

test('the disk of images is the disk of the image folder, or the disk of the data folder if the runtime reports none', async () => {
  const same = await read([]);
  expect(same.disk.capacityBytes).toBeGreaterThan(0);
  expect(same.runtimeDisk.capacityBytes).toBe(same.disk.capacityBytes);
  // The file system of /proc has no capacity.
  const other = await read([], { imageFolder: '/proc' });
  expect(other.disk.capacityBytes).toBe(same.disk.capacityBytes);
  expect(other.runtimeDisk.capacityBytes).toBe(0);
});

test('a Pod has the number of processes of all of its containers', async () => {
  const one = container('app', usageOf(RUNNING, 3000, 0));
  const none = container('none', usageOf('no-such-container', 3000, 0));
  const { pods } = await read([used(podOf(), one), used(podOf(), one, none, one), used(podOf(), none), used(podOf())]);
  const [single = 0, ...others] = pods.map(({ processes }) => processes);
  expect(single).toBeGreaterThan(0);
  expect(others).toEqual([2 * single, 0, 0]);
});

test('a Pod has the interfaces and the volumes that the ports return for it', async () => {
  const interfaces = [{ name: 'eth0', rxBytes: 1, rxErrors: 2, txBytes: 3, txErrors: 4 }];
  const volumes = [{ name: 'data', usedBytes: 1, inodesUsed: 2 }];
  const [pod, other] = [used(podOf()), used({ ...podOf(), metadata: { name: 'other', uid: 'u2' } })];
  const { pods } = await read([pod, other], {
    networks: {
      keep: () => undefined,
      interfaces: async (asked, given) => (asked === pod && given === signal ? interfaces : undefined),
    },
    volumes: { claims: async () => [], read: async (asked) => (asked === pod.pod ? volumes : []) },
  });
  expect(pods).toMatchObject([
    { used: pod, interfaces, volumes },
    { used: other, interfaces: undefined, volumes: [] },
  ]);
});

test('a container has its CPU rate between the samples or since its start, and its log files', async () => {
  mkdirSync(join(dataDir, 'logs/known'), { recursive: true });
  for (const file of ['0.log', '1.log']) writeFileSync(join(dataDir, 'logs/known', file), new Uint8Array(10_000));
  const known = container('known', usageOf('known', 3000, 6e9), 500);
  const started = container('started', usageOf('started', 3000, 1e9), 2500);
  const unknown = container('unknown', usageOf('unknown', 3000, 1e9));
  const [pod] = (await read([used(podOf(), known, started, unknown)])).pods;
  expect(pod?.containers).toMatchObject([
    { ...known, cpuNanoCores: 0.5e9, logs: { files: 2 } },
    { ...started, cpuNanoCores: 2e9, logs: { usedBytes: 0, files: 0 } },
    { ...unknown, cpuNanoCores: undefined, logs: { usedBytes: 0, files: 0 } },
  ]);
  expect(pod?.containers[0]?.logs.usedBytes).toBeGreaterThanOrEqual(20_000);
});

test.each([
  ['8Mi', 8 * 2 ** 20],
  ['0', 0],
  [undefined, undefined],
  ['much', undefined],
])('the memory limit %s of a container is %s in bytes', async (memory, expected) => {
  const limits: Record<string, string> = memory === undefined ? {} : { memory };
  const pod = podOf({ containers: [containerOf('other'), containerOf('app', { resources: { limits } })] });
  const names = ['app', 'other', 'absent'];
  const { pods } = await read([used(pod, ...names.map((name) => container(name, usageOf(name, 3000, 0))))]);
  expect(pods[0]?.containers.map(({ memoryLimitBytes }) => memoryLimitBytes)).toEqual([expected, undefined, undefined]);
});

test("a Pod's own files are its /etc/hosts and the termination messages of its containers", async () => {
  const folder = join(dataDir, 'pods/u1');
  mkdirSync(join(folder, 'containers/app'), { recursive: true });
  mkdirSync(join(folder, 'volumes'));
  for (const file of ['etc-hosts', 'containers/app/0', 'volumes/data'])
    writeFileSync(join(folder, file), new Uint8Array(100_000));
  const other = { ...podOf(), metadata: { name: 'other', uid: 'u2' } };
  const [pod, empty] = (await read([used(podOf()), used(other)])).pods;
  expect(empty?.files).toEqual({ bytes: 0, inodes: 0 });
  // The four inodes are etc-hosts, containers, containers/app and containers/app/0.
  expect(pod?.files.inodes).toBe(4);
  expect(pod?.files.bytes).toBeGreaterThanOrEqual(200_000);
  expect(pod?.files.bytes).toBeLessThan(260_000);
});
