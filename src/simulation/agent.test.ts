import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createCatalog } from '../api/catalog.ts';
import type { Pod, ServiceAccount } from '../api/generated/types.ts';
import { kinds } from '../api/kinds.ts';
import { PODS, SERVICE_ACCOUNTS } from '../api/resources.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { createRegistry } from '../apiserver/registry/registry.ts';
import { withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { startNodeAgent } from '../node/agent.ts';
import { readCapacity } from '../node/status/machine-facts.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { apiFor } from '../ports/api-for.ts';
import type { ResourceApi } from '../ports/backend.ts';
import type { ContainerStreams } from '../runtime/runtime.ts';
import {
  createSimulatedRuntime,
  type SimulatedRuntime,
  type SimulatedRuntimeOptions,
} from '../runtime/simulated/simulated-runtime.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';

const timers = systemTimers();
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Node {
  runtime: SimulatedRuntime & ContainerStreams;
  registry: ResourceApi;
  /** Starts an agent, which runs until stop() is called or the test ends. */
  startAgent(backend: ResourceApi): { ready: Promise<unknown>; stop: () => void };
  create(pod: Partial<Pod['spec']> & object): Promise<Pod>;
}

async function newNode(options: Partial<SimulatedRuntimeOptions>): Promise<Node> {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-agent-'));
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }));
  const backend = await createRegistry({
    store: createMemoryStore(),
    catalog: createCatalog(kinds),
    timers,
    log: silentLog,
    serviceCidr: '10.96.0.0/16',
  });
  cleanups.push(() => backend.close());
  const registry = apiFor(backend, { name: 'system:node:node-1', groups: ['system:nodes'] });
  const admin = apiFor(backend, { name: 'admin', groups: ['system:masters'] });
  await bootstrap(admin, { serviceCidr: '10.96.0.0/16', apiServerPort: 6443 });
  const client = clientOf(admin);
  await client
    .resource<ServiceAccount>(SERVICE_ACCOUNTS)
    .create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'default' } });

  const simulated = createSimulatedRuntime({
    timers,
    script: () => ({ stopMillis: 1 }),
    images: ['busybox:1.28'],
    ...options,
  });
  const noStreams = async (): Promise<never> => {
    throw new Error('simulated containers have no streams');
  };
  const streams: ContainerStreams = { exec: noStreams, attach: noStreams, portForward: noStreams };
  const runtime: typeof simulated & ContainerStreams = {
    ...simulated,
    ...streams,
    // Like a real runtime, this one first reports that everything may have changed.
    events(listener, signal) {
      listener({ type: 'resync' });
      return simulated.events(listener, signal);
    },
  };
  const capacity = await readCapacity({ folder: dataDir });
  const startAgent = (backend: ResourceApi): { ready: Promise<unknown>; stop: () => void } => {
    const ending = new AbortController();
    const ready = startNodeAgent(
      withInformers({
        timers,
        log: silentLog,
        client: clientOf(backend),
        runtime,
        runtimeName: 'simulated',
        nodeName: 'node-1',
        nodeIps: ['192.0.2.1'],
        dataDir,
        capacity,
        clusterDns: [],
        clusterDomain: 'cluster.local',
        signal: ending.signal,
      }),
    );
    cleanups.push(() => ending.abort());
    return { ready, stop: () => ending.abort() };
  };

  const create: Node['create'] = (spec) =>
    client.resource<Pod>(PODS).create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'kept', namespace: 'default' },
      spec: { nodeName: 'node-1', automountServiceAccountToken: false, containers: [], ...spec },
    });
  return { runtime, registry, startAgent, create };
}

it('a new agent adopts running containers, even if the runtime sends an event before the API has answered', async () => {
  const { registry, startAgent, create, runtime } = await newNode({});
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
  await create({ containers: [{ name: 'app', image: 'busybox:1.28' }] });
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
  expect(runtime.trace.map(({ what }) => what)).toEqual(['sandbox', 'start']);
});

it('a new agent restarts a container that the previous agent stopped for its liveness probe, regardless of the exit code', async () => {
  const { registry, startAgent, create, runtime } = await newNode({
    script: () => ({}),
    exec: ({ attempt }) => ({ exitCode: attempt === 0 ? 1 : 0 }),
  });
  const stopRequested = new Promise<string>((resolve) => {
    const { stopContainer } = runtime;
    runtime.stopContainer = (id, ...more) => {
      resolve(id);
      return stopContainer(id, ...more);
    };
  });
  const first = startAgent(registry);
  await first.ready;
  const livenessProbe = { exec: { command: ['check'] }, failureThreshold: 1 };
  await create({ restartPolicy: 'OnFailure', containers: [{ name: 'app', image: 'busybox:1.28', livenessProbe }] });
  const id = await stopRequested;
  first.stop();
  runtime.kill(id, 0);
  const restarted = new Promise<void>((resolve) => {
    const watching = new AbortController();
    cleanups.push(() => watching.abort());
    void runtime.events(() => {
      if (runtime.trace.filter(({ what }) => what === 'start').length === 2) resolve();
    }, watching.signal);
  });
  await startAgent(registry).ready;
  await restarted;
});
