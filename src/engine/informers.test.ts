/** Tests what the parts of an engine have in common: the informers. The parts are real, except for the simulated container runtime. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { startControllers } from '../controllers/controllers.ts';
import { startDns } from '../network/dns.ts';
import { startNodeAgent } from '../node/agent.ts';
import { readCapacity } from '../node/status/machine-facts.ts';
import { startNodeStatus } from '../node/status/node-status.ts';
import { startPodMetrics } from '../node/usage/pod-metrics.ts';
import { createMetrics } from '../platform/metrics.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createSimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { startScheduler } from '../scheduler/scheduler.ts';

test('DNS, scheduler, controllers and node agent together watch each resource once', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-informers-'));
  const stop = new AbortController();
  onTestFinished(async () => {
    stop.abort();
    await rm(dataDir, { recursive: true, force: true });
  });
  const timers = systemTimers();
  const backend = await registryBackend({ timers });
  const parts = withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal });
  const noStreams = () => Promise.reject(new Error('simulated containers have no streams'));
  const runtime = {
    ...createSimulatedRuntime({ timers, script: () => ({ stopMillis: 1 }), images: [] }),
    exec: noStreams,
    attach: noStreams,
    portForward: noStreams,
  };
  const node = { runtime, nodeName: 'n1', capacity: await readCapacity({ folder: dataDir }) };
  const upstreamFrom = join(dataDir, 'resolv.conf');
  await writeFile(upstreamFrom, '');
  const nothing = async (): Promise<void> => undefined;
  const folders = { nodeName: 'n1', path: String, create: nothing, remove: nothing, removeUnused: nothing };
  await Promise.all([
    startDns({ ...parts, ip: '127.0.0.1', port: 0, clusterDomain: 'cluster.local', upstreamFrom }),
    startScheduler({ ...parts, schedulerName: 'default-scheduler' }),
    startControllers({
      optionsOf: () => parts,
      catalog: createCatalog(kinds),
      caPem: 'PEM',
      bootstrap: nothing,
      recordLimits: { ageMillis: 1000, bytes: 1000 },
      folders,
    }),
    startNodeAgent({
      ...parts,
      ...node,
      runtimeName: 'simulated',
      nodeIps: ['192.0.2.1'],
      dataDir,
      clusterDns: [],
      clusterDomain: 'cluster.local',
    }),
    startNodeStatus({
      ...parts,
      ...node,
      podCidr: '10.244.0.0/24',
      internalIp: async () => '192.0.2.1',
      pressure: { conditions: () => new Set() },
      version: 'v1.33.0',
    }),
  ]);
  startPodMetrics({ ...parts, ...node, metrics: createMetrics() });
  const followed = [
    'configmaps',
    'events',
    'leases',
    'namespaces',
    'nodes',
    'persistentvolumeclaims',
    'persistentvolumes',
    'podrecords',
    'pods',
    'secrets',
    'serviceaccounts',
    'services',
    'storageclasses',
  ];
  const watches = (): string[] => backend.calls.filter((call) => call.startsWith('watch ')).sort();
  await expect.poll(watches).toEqual(followed.map((resource) => `watch ${resource} /`));
});
