/** Tests the informers that the parts of an engine share. The parts are real, except for the simulated container runtime. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { noCertificates } from '../controllers/certificates/no-certificates-fixture.ts';
import { startControllers } from '../controllers/controllers.ts';
import { startDns } from '../network/dns/dns.ts';
import { startPolicies } from '../network/policies/policies.ts';
import { startProxy } from '../network/proxy/proxy.ts';
import { startNodeAgent } from '../node/agent.ts';
import { readCapacity } from '../node/status/machine-facts.ts';
import { startNodeStatus } from '../node/status/node-status.ts';
import { startPodMetrics } from '../node/usage/pod-metrics.ts';
import { createMetrics } from '../platform/metrics.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createSimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { startScheduler } from '../scheduler/scheduler.ts';

test('DNS, proxy, NetworkPolicies, scheduler, controllers and node agent together watch each resource once', async () => {
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
  const nothing = async (): Promise<void> => undefined;
  const folders = { nodeName: 'n1', path: String, create: nothing, remove: nothing, removeUnused: nothing };
  await Promise.all([
    startDns({
      ...parts,
      addresses: ['127.0.0.1'],
      port: 0,
      clusterDomain: 'cluster.local',
      resolvConf: join(dataDir, 'resolv.conf'),
      socket: join(dataDir, 'dns.sock'),
      logFile: join(dataDir, 'dns.log'),
    }).then((dns) => onTestFinished(() => dns.stop())),
    startScheduler({ ...parts, schedulerName: 'default-scheduler' }),
    startControllers({
      optionsOf: () => parts,
      catalog: createCatalog(kinds),
      caPem: 'PEM',
      issueLegacyToken: async () => 'token',
      bootstrap: nothing,
      recordLimits: { ageMillis: 1000, bytes: 1000 },
      folders,
      ...noCertificates,
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
      podCidrs: ['10.244.0.0/24'],
      internalIps: async () => ['192.0.2.1'],
      pressure: { conditions: () => new Set() },
      version: 'v1.33.0',
    }),
  ]);
  const services = startProxy({
    ...parts,
    table: { name: 'lifepod-0', set: async () => new Map() },
    nodeName: 'n1',
    podCidrs: [],
    serviceCidrs: [],
    reservedIps: [],
    api: { ips: ['127.0.0.1'], port: 6443 },
  });
  const sandboxes = { isAttached: () => false, onDetached: nothing };
  startPolicies({
    ...parts,
    table: { name: 'lifepod-0', set: async () => new Map() },
    nodeName: 'n1',
    sandboxes,
    left: async () => [],
    firstRulesMillis: 1000,
  });
  await services.written;
  startPodMetrics({ ...parts, ...node, metrics: createMetrics() });
  // The garbage collector follows all kinds with owners and dependents; other parts follow Events and PodRecords.
  const followed = kinds
    .filter(({ storage, createOnly, computed }) => [storage, createOnly, computed].every((each) => each === undefined))
    .map(({ plural }) => plural)
    .sort();
  const watches = (): string[] => backend.calls.filter((call) => call.startsWith('watch ')).sort();
  await expect.poll(watches).toEqual(followed.map((resource) => `watch ${resource} /`));
});
