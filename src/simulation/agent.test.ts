import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { Pod, ServiceAccount } from '../api/generated/types.ts';
import { kinds } from '../api/kinds.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { createRegistry } from '../apiserver/registry/registry.ts';
import { inProcessClient } from '../client/typed-client.ts';
import type { ResourceBackend } from '../machinery/backend.ts';
import { startNodeAgent } from '../node/agent.ts';
import { readCapacity } from '../node/machine.ts';
import { systemTimers } from '../platform/node.ts';
import type { Log } from '../platform/platform.ts';
import type { ContainerStreams } from '../runtime/runtime.ts';
import { createSimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';

const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const timers = systemTimers();
const PODS = { group: '', version: 'v1', resource: 'pods' };
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

it('a new agent adopts what runs, though the runtime speaks before the API has answered', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-agent-'));
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }));
  const registry = await createRegistry({
    store: createMemoryStore(),
    kinds,
    timers,
    log: silent,
    serviceCidr: '10.96.0.0/16',
  });
  cleanups.push(() => registry.close());
  await bootstrap(registry, { serviceCidr: '10.96.0.0/16', apiServerPort: 6443 });
  const client = inProcessClient(registry);
  await client
    .resource<ServiceAccount>({ group: '', version: 'v1', resource: 'serviceaccounts' })
    .create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'default' } });

  const simulated = createSimulatedRuntime({ timers, script: () => ({ stopMillis: 1 }), images: ['busybox:1.28'] });
  const noStreams = async (): Promise<never> => {
    throw new Error('simulated containers have no streams');
  };
  const streams: ContainerStreams = { exec: noStreams, attach: noStreams, portForward: noStreams };
  const runtime: typeof simulated & ContainerStreams = {
    ...simulated,
    ...streams,
    // As a real one: subscribed at once, and everything may have changed.
    events(listener, signal) {
      listener({ type: 'resync' });
      return simulated.events(listener, signal);
    },
  };
  const capacity = await readCapacity({ folder: dataDir });
  const startAgent = (backend: ResourceBackend): { ready: Promise<unknown>; stop: () => void } => {
    const ending = new AbortController();
    const ready = startNodeAgent({
      ...{ timers, log: silent, client: inProcessClient(backend), runtime, runtimeName: 'simulated' },
      ...{
        nodeName: 'node-1',
        nodeIps: ['192.0.2.1'],
        dataDir,
        capacity,
        clusterDns: [],
        clusterDomain: 'cluster.local',
      },
      signal: ending.signal,
    });
    cleanups.push(() => ending.abort());
    return { ready, stop: () => ending.abort() };
  };

  const first = startAgent(registry);
  await first.ready;
  const isReady = new Promise<void>((resolve) => {
    const watching = new AbortController();
    cleanups.push(() => watching.abort());
    void registry.watch(
      PODS,
      { namespace: 'default' },
      ({ object }) => {
        const conditions = (object as Pod).status?.conditions ?? [];
        if (conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) resolve();
      },
      watching.signal,
    );
  });
  await client.resource<Pod>(PODS).create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'kept', namespace: 'default' },
    spec: {
      nodeName: 'node-1',
      automountServiceAccountToken: false,
      containers: [{ name: 'app', image: 'busybox:1.28' }],
    },
  });
  await isReady;
  first.stop();

  let refusals = 2;
  const second = startAgent({
    ...registry,
    get: registry.get,
    list: async (ref, options) => {
      if (ref.resource === 'pods' && refusals-- > 0) throw new Error('not yet');
      return registry.list(ref, options);
    },
  });
  await second.ready;
  expect(simulated.trace.map(({ what }) => what)).toEqual(['sandbox', 'start']);
});
