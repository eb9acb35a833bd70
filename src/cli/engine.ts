/**
 * The engine: everything of one machine in one process, composed.
 *
 * Boundary: the only file that knows all the parts; no part knows another but through what is handed to it here.
 * Invariants:
 *  1. The lock on the data folder is taken first and freed last.
 *  2. Whatever was started is ended again where a later step fails, in the reverse order.
 *  3. Ending the engine ends no Pod: the next start adopts them. `lifepod down` ends them.
 */
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import type { Node } from '../api/generated/types.ts';
import { kinds } from '../api/kinds.ts';
import { writeKubeconfig } from '../apiserver/pki/kubeconfig.ts';
import { loadOrCreatePki, type Pki } from '../apiserver/pki/pki.ts';
import { createTokenIssuer } from '../apiserver/pki/tokens.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { createRegistry, type Registry } from '../apiserver/registry/registry.ts';
import { dnsServiceAddress, kubernetesServiceAddress } from '../apiserver/registry/service-range.ts';
import { startApiServer } from '../apiserver/server.ts';
import type { Client } from '../client/client.ts';
import { inProcessClient } from '../client/typed-client.ts';
import { startControllers } from '../controllers/controllers.ts';
import type { NodeConnection } from '../machinery/node-connection.ts';
import { serviceUnavailable } from '../machinery/status.ts';
import { setUpNetwork } from '../network/bridge.ts';
import { startDns } from '../network/dns.ts';
import { type NodeAgent, startNodeAgent } from '../node/agent.ts';
import { startNodeStatus } from '../node/node-status.ts';
import { checkDataFormat, ensureDataDir, lockDataDir } from '../platform/files.ts';
import type { Platform } from '../platform/platform.ts';
import { raisePriority } from '../platform/processes.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { openLmdbStore } from '../store/lmdb/lmdb-store.ts';
import { startRuntime } from './engine-runtime.ts';
import { checkMachine, checkPortFree, nodeAddress } from './machine.ts';
import {
  type EngineRecord,
  kubeconfigPath,
  readEngineRecord,
  resolveSettings,
  type Settings,
  type UpOptions,
  writeEngineRecord,
} from './settings.ts';
import { KUBERNETES_VERSION, LIFEPOD_VERSION } from './version.ts';

const HOST = '127.0.0.1';
const DNS_PORT = 53;
const CLUSTER_DOMAIN = 'cluster.local';
const TOKEN_ISSUER = `https://kubernetes.default.svc.${CLUSTER_DOMAIN}`;
const NODES = { group: '', version: 'v1', resource: 'nodes' };

export interface Engine {
  settings: Settings;
  /** https://127.0.0.1:6443 */
  server: string;
  /** Ends the static Pods, gracefully, and begins none any more. Resolves when nothing of them is left. */
  endStaticPods(): Promise<void>;
  /** Resolves when it has ended, after the signal of startEngine() aborted. */
  stopped: Promise<void>;
}

/**
 * Resolves when the node is Ready. Rejects with a UserError where it cannot start; then nothing of it is left but what
 * an earlier one had started. `signal` ends it.
 */
export async function startEngine(options: UpOptions, platform: Platform, signal: AbortSignal): Promise<Engine> {
  checkMachine({ privateContainerd: options.containerRuntimeEndpoint === undefined });
  ensureDataDir(options.dataDir);
  const settings = resolveSettings(options, readEngineRecord(options.dataDir));
  raisePriority();
  const closers = new AsyncDisposableStack();
  try {
    const lock = lockDataDir(settings.dataDir);
    closers.defer(() => lock.release());
    checkDataFormat(settings.dataDir);
    await checkPortFree(HOST, settings.port);
    writeEngineRecord(settings.dataDir, recordOf(settings, settings.port));
    const { port, agent } = await startParts(settings, platform, closers, signal);
    flushCompileCache();
    return {
      settings,
      server: `https://${HOST}:${port}`,
      endStaticPods: agent.endStaticPods,
      stopped: aborted(signal).then(() => closers.disposeAsync()),
    };
  } catch (error) {
    await closers.disposeAsync();
    throw error;
  }
}

const recordOf = (settings: Settings, port: number): EngineRecord => ({
  version: LIFEPOD_VERSION,
  port,
  podCidr: settings.podCidr,
  serviceCidr: settings.serviceCidr,
  nodeName: settings.nodeName,
  containerRuntimeEndpoint: settings.containerRuntimeEndpoint,
  state: 'up',
});

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Starts at the same time what does not need one another. */
async function startParts(
  settings: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  stopping: AbortSignal,
): Promise<{ port: number; agent: NodeAgent }> {
  const ending = new AbortController();
  const signal = AbortSignal.any([stopping, ending.signal]);
  const dnsIp = dnsServiceAddress(settings.serviceCidr);
  const { dataDir, podCidr, serviceCidr } = settings;

  const [registry, runtime, network, address] = await together([
    openRegistry(settings, platform, closers),
    startRuntime(settings, platform, closers, signal),
    setUpNetwork({ dataDir, instance: dataDir, podCidr, serviceCidr, dnsIp, signal }),
    nodeAddress(signal),
  ]);
  const nodeIp = address ?? network.gateway;
  const client = inProcessClient(registry.registry);
  closers.defer(() => ending.abort());
  const loops = { client, ...platform, signal };
  const node = lateNode();
  const port = await serveApi(settings, platform, closers, { ...registry, nodes: node.connection });
  const dns = { ip: dnsIp, port: DNS_PORT, clusterDomain: CLUSTER_DOMAIN, upstreamFrom: '/etc/resolv.conf' };
  const [agent] = await together([
    startNodeAgent({
      ...loops,
      runtime: runtime.runtime,
      runtimeName: runtime.name,
      nodeName: settings.nodeName,
      nodeIps: [nodeIp],
      dataDir,
      clusterDns: [dnsIp],
      clusterDomain: CLUSTER_DOMAIN,
    }),
    startNodeStatus({
      ...loops,
      runtime: runtime.runtime,
      nodeName: settings.nodeName,
      podCidr,
      internalIp: nodeIp,
      dataDir,
      version: `${KUBERNETES_VERSION}+lifepod.${LIFEPOD_VERSION}`,
    }).then((reporter) => runtime.onChange(() => void reporter.check())),
    startDns({ ...loops, ...dns }),
    startScheduler({ ...loops, schedulerName: 'default-scheduler' }),
    startControllers({ ...loops, caPem: registry.pki.caCertificate }),
  ]);
  node.connect(agent.connection);
  closers.defer(() => agent.flushed());
  await nodeReady(client, settings.nodeName, signal);
  return { port, agent };
}

interface OpenRegistry {
  registry: Registry;
  pki: Pki;
}

async function openRegistry(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
): Promise<OpenRegistry> {
  const { dataDir, serviceCidr, nodeName } = settings;
  const [store, pki] = await together([
    openLmdbStore({ directory: join(dataDir, 'store'), log }),
    loadOrCreatePki(dataDir, {
      hostnames: [nodeName],
      ips: [kubernetesServiceAddress(serviceCidr)],
      now: timers.now(),
    }),
  ]);
  closers.defer(() => store.close());
  const { issue } = createTokenIssuer(pki, TOKEN_ISSUER, timers.now);
  const registry = await createRegistry({ store, kinds, timers, log, serviceCidr, issueToken: issue });
  closers.defer(() => registry.close());
  return { registry, pki };
}

/** Returns the port. */
async function serveApi(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
  { registry, pki, nodes }: OpenRegistry & { nodes: NodeConnection },
): Promise<number> {
  const { dataDir, serviceCidr } = settings;
  const version = LIFEPOD_VERSION;
  const api = await startApiServer({
    ...{ backend: registry, kinds, nodes, pki, host: HOST, port: settings.port, version, timers, log },
  });
  closers.defer(() => api.close());
  await bootstrap(registry, { serviceCidr, apiServerPort: api.port });
  writeKubeconfig(kubeconfigPath(dataDir), { server: `https://${HOST}:${api.port}`, pki });
  writeEngineRecord(dataDir, recordOf(settings, api.port));
  return api.port;
}

/** The node for the API server, which is there before the node is. */
function lateNode(): { connection: NodeConnection; connect(connection: NodeConnection): void } {
  let connected: NodeConnection | undefined;
  const node = (): NodeConnection => {
    if (connected === undefined) throw serviceUnavailable('the node is starting');
    return connected;
  };
  return {
    connect: (connection) => {
      connected = connection;
    },
    connection: {
      logs: (...query) => node().logs(...query),
      exec: async (...query) => node().exec(...query),
      attach: async (...query) => node().attach(...query),
      portForward: async (...query) => node().portForward(...query),
    },
  };
}

async function nodeReady(client: Client, name: string, signal: AbortSignal): Promise<void> {
  const enough = new AbortController();
  await client.resource<Node>(NODES).watch(
    { fieldSelector: `metadata.name=${name}` },
    (event) => {
      if (event.type === 'ERROR') return;
      const conditions = event.object.status?.conditions ?? [];
      if (conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) enough.abort();
    },
    AbortSignal.any([signal, enough.signal]),
  );
  signal.throwIfAborted();
}

/** As Promise.all, but waits for all of them also where one fails, so that what they started can be ended. */
async function together<T extends readonly unknown[]>(
  parts: readonly [...T],
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  const results = await Promise.allSettled(parts);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as {
    -readonly [I in keyof T]: Awaited<T[I]>;
  };
}
