import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { DiskUsage } from './machine-usage.ts';
import { type SummaryContainer, type SummaryFacts, type SummaryPod, summary } from './summary.ts';

const NOW = Date.UTC(2026, 0, 31);
const TIME = '2026-01-31T00:00:00Z';
const DISK: DiskUsage = { capacityBytes: 1000, usedBytes: 600, availableBytes: 300, inodes: 50, inodesFree: 20 };
const OWN: DiskUsage = { capacityBytes: 64, usedBytes: 16, availableBytes: 48, inodes: 8, inodesFree: 6 };
const shown = {
  time: TIME,
  availableBytes: 300,
  capacityBytes: 1000,
  usedBytes: 600,
  inodesFree: 20,
  inodes: 50,
  inodesUsed: 30,
};

const container = (name: string, more: Partial<SummaryContainer> = {}): SummaryContainer => ({
  name,
  startedAt: NOW - 5000,
  image: 'i',
  usage: { podUid: 'u', id: name, name, attempt: 0, at: NOW - 1000, cpuNanoSeconds: 700, workingSetBytes: 80 },
  cpuNanoCores: 10.6,
  logs: { usedBytes: 5, files: 1 },
  memoryLimitBytes: 100,
  ...more,
});
const podWith = (containers: SummaryContainer[], more: Partial<SummaryPod> = {}): SummaryPod => ({
  used: { pod: podOf(), logDirectory: '', containers: [], sandboxId: 's' },
  interfaces: undefined,
  containers,
  volumes: [],
  files: { bytes: 2, inodes: 3 },
  processes: 4,
  ...more,
});
const factsWith = (...pods: SummaryPod[]): SummaryFacts => ({
  node: 'node-1',
  now: NOW,
  machine: {
    at: NOW,
    cpuNanoSeconds: 9000,
    bootedAt: NOW - 60_000,
    memory: { usageBytes: 4, workingSetBytes: 3, availableBytes: 2, rssBytes: 1 },
  },
  cpuNanoCores: 1.4,
  interfaces: [{ name: 'eth0', rxBytes: 1, rxErrors: 2, txBytes: 3, txErrors: 4 }],
  disk: DISK,
  runtimeDisk: OWN,
  processes: { maxPid: 100, running: 7 },
  pods,
});

test('the summary of the node has its usage, and its first interface as the default interface', () => {
  const { node } = summary(factsWith());
  expect(node).toMatchObject({
    nodeName: 'node-1',
    startTime: '2026-01-30T23:59:00Z',
    cpu: { time: TIME, usageNanoCores: 1, usageCoreNanoSeconds: 9000 },
    memory: { time: TIME, workingSetBytes: 3 },
    network: { name: 'eth0', rxBytes: 1, interfaces: [{ name: 'eth0' }] },
    fs: shown,
    rlimit: { time: TIME, maxpid: 100, curproc: 7 },
  });
});

test('a container has its start time and the memory that is left below its limit, if they are known', () => {
  const [one, two] = [container('one'), container('two', { startedAt: undefined, memoryLimitBytes: undefined })];
  const full = container('full', { memoryLimitBytes: 79 });
  const [pod] = summary(factsWith(podWith([one, two, full]))).pods;
  expect(pod?.containers.map(({ name, startTime, memory }) => [name, startTime, memory.availableBytes])).toEqual([
    ['one', '2026-01-30T23:59:55Z', 20],
    ['two', undefined, undefined],
    ['full', '2026-01-30T23:59:55Z', 0],
  ]);
  expect(pod?.containers[0]).toMatchObject({
    cpu: { usageNanoCores: 11 },
    logs: { ...shown, usedBytes: 5, inodesUsed: 1 },
  });
});

test('the usage of a Pod is the sum of its containers, its files and its volumes on the disk', () => {
  const usage = { ...container('two').usage, at: NOW, rootFs: { usedBytes: 40, inodesUsed: 6 } };
  const volumes = [
    { name: 'data', usedBytes: 100, inodesUsed: 10 },
    { name: 'memory', usedBytes: 16, inodesUsed: 2, own: OWN },
    { name: 'claimed', usedBytes: 7, inodesUsed: 1, own: DISK, claim: 'c' },
  ];
  const containers = [container('one'), container('two', { usage, cpuNanoCores: undefined })];
  const [pod] = summary(factsWith(podWith(containers, { volumes }))).pods;
  expect(pod).toMatchObject({
    cpu: { time: TIME, usageNanoCores: 11, usageCoreNanoSeconds: 1400 },
    memory: { time: TIME, workingSetBytes: 160 },
    network: undefined,
    process_stats: { process_count: 4 },
    'ephemeral-storage': { ...shown, usedBytes: 40 + 5 + 5 + 100 + 2, inodesUsed: 6 + 1 + 1 + 10 + 3 },
  });
  expect(pod?.volume).toMatchObject([
    { name: 'data', capacityBytes: 1000, usedBytes: 100, inodesUsed: 10, pvcRef: undefined },
    { name: 'memory', capacityBytes: 64, usedBytes: 16 },
    { name: 'claimed', usedBytes: 7, pvcRef: { name: 'c' } },
  ]);
});

test('a Pod whose containers have no CPU rate yet shows no rate', () => {
  const [pod] = summary(factsWith(podWith([container('one', { cpuNanoCores: undefined })]))).pods;
  expect(pod?.cpu).toEqual({ time: '2026-01-30T23:59:59Z', usageNanoCores: undefined, usageCoreNanoSeconds: 700 });
});
