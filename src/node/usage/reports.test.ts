import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createMetrics } from '../../platform/metrics.ts';
import { systemTimers } from '../../platform/node-js.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import type { NodePod } from './node-pods.ts';
import { createNodeReports } from './reports.ts';

const MEBIBYTE = 2 ** 20;
const timers = systemTimers();

let dataDir: string;
let stop: AbortController;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-reports-'));
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
  rmSync(dataDir, { recursive: true, force: true });
});

const run = (id: string, name: string) => ({
  ...({ id, name, sandboxId: 's', kind: 'app', attempt: 0, state: 'running', image: 'i', imageId: 'i' } as const),
  createdAt: 0,
  startedAt: timers.now() - 60_000,
  backoffSeconds: 0,
});

function pods(): NodePod[] {
  const metadata = { name: 'web', namespace: 'default', uid: 'u' };
  const limits = { memory: '8Mi' };
  const volumes = [
    { name: 'cache', emptyDir: {} },
    { name: 'data', persistentVolumeClaim: { claimName: 'claimed' } },
  ];
  const spec = { containers: [{ name: 'app' }], deferContainers: [{ name: 'side', resources: { limits } }], volumes };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { startTime: '2026-01-31T00:00:00Z' } };
  const logDirectory = join(dataDir, 'logs', 'web');
  const pending = { ...pod, metadata: { ...metadata, name: 'pending', uid: 'v' } };
  return [
    // The containers are not in the order of the spec, and the container with the ID `gone` has no usage, because it no longer runs.
    { pod, logDirectory, sandboxes: [], containers: [run('c2', 'side'), run('c1', 'app'), run('gone', 'app')] },
    { pod: pending, logDirectory, sandboxes: [], containers: [] },
  ];
}

/** The container `side` uses half a core. A third container belongs to no known Pod. */
function reports() {
  const began = timers.now();
  const usage = (id: string, name: string, cores: number): ContainerUsage => ({
    podUid: 'u',
    id,
    name,
    attempt: 0,
    at: timers.now(),
    workingSetBytes: 5 * MEBIBYTE,
    cpuNanoSeconds: cores * (timers.now() - began) * 1e6,
  });
  return createNodeReports({
    nodeName: 'n',
    pods,
    metrics: createMetrics(),
    configuration: { maxPods: 7 },
    dataDir,
    timers,
    signal: stop.signal,
    runtime: {
      containerUsage: async () => [usage('c1', 'app', 0), usage('c2', 'side', 0.5), usage('x', 'other', 1)],
      sandboxPid: async () => undefined,
    },
  });
}

test('usage() returns usage by Pod and container', async () => {
  const { node, cpuNanoCores, memoryWorkingSetBytes, pods: used, windowMillis } = await reports().usage();
  expect({ node, used }).toEqual({
    node: 'n',
    used: [
      {
        namespace: 'default',
        name: 'web',
        containers: [
          { name: 'app', cpuNanoCores: 0, memoryWorkingSetBytes: 5 * MEBIBYTE },
          { name: 'side', cpuNanoCores: expect.closeTo(0.5e9, -6), memoryWorkingSetBytes: 5 * MEBIBYTE },
        ],
      },
    ],
  });
  expect(windowMillis).toBeGreaterThanOrEqual(1000);
  // The rate may be 0 on an idle machine.
  expect(cpuNanoCores).toBeGreaterThanOrEqual(0);
  expect(memoryWorkingSetBytes).toBeGreaterThan(MEBIBYTE);
});

test('stats/summary has the shape of v1.33', async () => {
  mkdirSync(join(dataDir, 'logs/web/app'), { recursive: true });
  writeFileSync(join(dataDir, 'logs/web/app/0.log'), new Uint8Array(10_000));
  mkdirSync(join(dataDir, 'pods/u/volumes/kubernetes.io~empty-dir/cache'), { recursive: true });
  mkdirSync(join(dataDir, 'pods/u/volumes/kubernetes.io~local-volume/data'), { recursive: true });
  mkdirSync(join(dataDir, 'pods/u/containers/app'), { recursive: true });
  for (const file of ['etc-hosts', 'containers/app/0'])
    writeFileSync(join(dataDir, 'pods/u', file), new Uint8Array(1_000_000));
  const document = await reports().document('n', '/stats/summary', stop.signal);
  const { node, pods: shown } = JSON.parse([...(document?.texts ?? [])].join(''));
  expect(Object.keys(node)).toEqual(['nodeName', 'startTime', 'cpu', 'memory', 'network', 'fs', 'runtime', 'rlimit']);
  const disk = ['time', 'availableBytes', 'capacityBytes', 'usedBytes', 'inodesFree', 'inodes', 'inodesUsed'];
  expect(Object.keys(node.fs)).toEqual(disk);
  const [web, ...others] = shown;
  expect(others).toEqual([]);
  expect(web.podRef).toEqual({ name: 'web', namespace: 'default', uid: 'u' });
  expect(web.containers.map(({ name }: { name: string }) => name)).toEqual(['app', 'side']);
  const [app, side] = web.containers;
  expect(side.memory).toMatchObject({ workingSetBytes: 5 * MEBIBYTE, availableBytes: 3 * MEBIBYTE });
  expect(app.memory).not.toHaveProperty('availableBytes');
  expect(app.logs.usedBytes).toBeGreaterThanOrEqual(10_000);
  expect(side.logs.usedBytes).toBe(0);
  expect(web.cpu.usageNanoCores).toBeGreaterThan(0.4e9);
  expect(web.volume).toMatchObject([
    { name: 'cache', inodesUsed: 1 },
    { name: 'data', capacityBytes: node.fs.capacityBytes, pvcRef: { name: 'claimed', namespace: 'default' } },
  ]);
  expect(web.process_stats).toEqual({ process_count: 0 });
  // The claim's volume is on the same disk but is not part of the ephemeral storage, because the volume outlives the Pod.
  const files = web['ephemeral-storage'].usedBytes - app.logs.usedBytes - web.volume[0].usedBytes;
  expect(files).toBeGreaterThanOrEqual(2_000_000);
  expect(files).toBeLessThan(2_100_000);
  // The Pod has no sandbox, so its network is unknown.
  expect(web).not.toHaveProperty('network');
});

test('document() returns known documents, undefined for unknown ones, and rejects for another node', async () => {
  const { document } = reports();
  expect(await document('n', '/healthz', stop.signal)).toMatchObject({ texts: ['ok'] });
  const pods = [...((await document('n', '/pods', stop.signal))?.texts ?? [])];
  expect(JSON.parse(pods.join('')).items).toHaveLength(2);
  expect(pods.length).toBeGreaterThan(2);
  const json = async (path: string) =>
    JSON.parse([...((await document('n', path, stop.signal))?.texts ?? [])].join(''));
  expect(await json('/configz')).toEqual({ kubeletconfig: { maxPods: 7 } });
  const { kind, items } = await json('/runningpods');
  expect([kind, items.length]).toEqual(['PodList', 1]);
  expect(items[0]).toMatchObject({
    metadata: { name: 'web', namespace: 'default', uid: 'u' },
    spec: { containers: [{ name: 'app' }, { name: 'side' }] },
  });
  expect(await document('n', '/run', stop.signal)).toBeUndefined();
  expect(await document('n', '/toString', stop.signal)).toBeUndefined();
  await expect(document('other', '/healthz', stop.signal)).rejects.toThrow('no connection to the node "other"');
});
