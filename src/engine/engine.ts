/**
 * The engine: composes all parts of one machine into one process.
 *
 * Boundary: the only file that knows all the parts; parts know each other only through what is passed to them here.
 * Invariants:
 *  1. The lock on the data folder is acquired first and released last.
 *  2. If a step fails, everything started before it is stopped in reverse order.
 *  3. Stopping the engine leaves Pods running, and the next start adopts them. Only `lifepod down` ends them.
 */
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { kinds } from '../api/kinds.ts';
import { writeKubeconfig } from '../apiserver/pki/kubeconfig.ts';
import { loadOrCreatePki, type Pki } from '../apiserver/pki/pki.ts';
import { createTokenIssuer } from '../apiserver/pki/tokens.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { createRegistry, type Registry } from '../apiserver/registry/registry.ts';
import { dnsServiceAddress, kubernetesServiceAddress } from '../apiserver/registry/services/service-range.ts';
import { startApiServer } from '../apiserver/server.ts';
import { inProcessClient } from '../client/typed-client.ts';
import { startControllers } from '../controllers/controllers.ts';
import { setUpNetwork } from '../network/bridge.ts';
import { startDns } from '../network/dns.ts';
import { type NodeAgent, startNodeAgent } from '../node/agent.ts';
import { MACHINE_RESOLV_CONF } from '../node/container/node-resolver.ts';
import { startNodeStatus } from '../node/status/node-status.ts';
import { readLastSignOfLife } from '../node/status/sign-of-life.ts';
import { startPodMetrics } from '../node/usage/pod-metrics.ts';
import { createNodeReports } from '../node/usage/reports.ts';
import { createLocalFolders } from '../node/volumes/local-folders.ts';
import { dropBallast, keepBallast } from '../platform/ballast.ts';
import { checkDataFormat, ensureDataDir, lockDataDir } from '../platform/files.ts';
import type { Metrics } from '../platform/metrics.ts';
import { onAbort } from '../platform/on-abort.ts';
import { ENGINE_OOM_SCORE, lowerOomScore } from '../platform/oom-score.ts';
import type { Platform } from '../platform/platform.ts';
import { raisePriority } from '../platform/processes.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { openLmdbStore } from '../store/lmdb/lmdb-store.ts';
import { measuredStore } from '../store/measured-store.ts';
import { addStorageMetrics, createEngineMetrics, type EngineMetrics } from './engine-metrics.ts';
import {
  agentSettings,
  checkPodGroups,
  checkResolvConf,
  createShutdown,
  nodeCapacity,
  openPressure,
} from './engine-node.ts';
import { startRuntime } from './engine-runtime.ts';
import { resolveImageSettings } from './image-settings.ts';
import { type LateNode, lateNode } from './late-node.ts';
import { checkMachine, checkPortFree } from './machine-checks.ts';
import { machineAddresses, openNodeAddress } from './node-address.ts';
import { nodeReady, type Waiting } from './node-ready.ts';
import { resolveNodeOptions, terminatedPods } from './node-settings.ts';
import { parseRecordLimits } from './record-settings.ts';
import {
  type EngineRecord,
  kubeconfigPath,
  readEngineRecord,
  resolveSettings,
  type Settings,
  type UpOptions,
  usesPrivateContainerd,
  writeEngineRecord,
} from './settings.ts';
import { KUBERNETES_VERSION, LIFEPOD_VERSION } from './version.ts';

const HOST = '127.0.0.1';
const DNS_PORT = 53;
const CLUSTER_DOMAIN = 'cluster.local';
const TOKEN_ISSUER = `https://kubernetes.default.svc.${CLUSTER_DOMAIN}`;

export interface Engine {
  settings: Settings;
  /** https://127.0.0.1:6443 */
  server: string;
  /** Ends the static Pods gracefully and starts no more of them. Resolves when nothing of them is left. */
  endStaticPods(): Promise<void>;
  /** Ends every Pod for a shutdown of the machine and keeps the objects. Resolves when all have ended or the grace periods are over. */
  shutDownNode(): Promise<void>;
  /** Resolves when the engine has stopped, after the signal of startEngine() aborted. */
  stopped: Promise<void>;
}

/**
 * Resolves when the node is Ready. Rejects with a UserError if the engine cannot start, after stopping everything it started.
 * `signal` stops the engine; `waiting` is called with the reason why the node is not Ready.
 */
export async function startEngine(
  options: UpOptions,
  platform: Platform,
  signal: AbortSignal,
  waiting: Waiting,
): Promise<Engine> {
  checkMachine(() => usesPrivateContainerd(options));
  ensureDataDir(options.dataDir);
  const settings = resolveSettings(options, readEngineRecord(options.dataDir));
  checkResolvConf(settings);
  raisePriority();
  lowerOomScore(process.pid, ENGINE_OOM_SCORE);
  const closers = new AsyncDisposableStack();
  try {
    const lock = lockDataDir(settings.dataDir);
    closers.defer(() => lock.release());
    dropBallast(settings.dataDir);
    checkDataFormat(settings.dataDir);
    await checkPortFree(HOST, settings.port);
    writeEngineRecord(settings.dataDir, recordOf(settings, settings.port));
    const { port, agent, shutDownNode } = await startParts(settings, platform, closers, signal, waiting);
    flushCompileCache();
    keepBallast(settings.dataDir);
    return {
      settings,
      server: `https://${HOST}:${port}`,
      endStaticPods: agent.endStaticPods,
      shutDownNode,
      stopped: aborted(signal).then(() => closers.disposeAsync()),
    };
  } catch (error) {
    await closers.disposeAsync();
    throw error;
  }
}

const recordOf = (settings: Settings, port: number): EngineRecord => ({
  version: LIFEPOD_VERSION,
  port: settings.recordedPort ?? port,
  podCidr: settings.podCidr,
  serviceCidr: settings.serviceCidr,
  nodeName: settings.nodeName,
  containerRuntimeEndpoint: settings.containerRuntimeEndpoint,
  recordAge: settings.recordAge,
  recordSize: settings.recordSize,
  maxGracePeriodExtension: settings.maxGracePeriodExtension,
  podPidsLimit: settings.podPidsLimit,
  runtimeHandlers: settings.runtimeHandlers,
  ...resolveImageSettings(settings),
  ...resolveNodeOptions(settings, undefined),
  state: 'up',
});

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    onAbort(signal, resolve);
  });

/** Starts independent parts concurrently. */
async function startParts(
  settings: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  stopping: AbortSignal,
  waiting: Waiting,
): Promise<{ port: number; agent: NodeAgent; shutDownNode: Engine['shutDownNode'] }> {
  const ending = new AbortController();
  const signal = AbortSignal.any([stopping, ending.signal]);
  const dnsIp = dnsServiceAddress(settings.serviceCidr);
  const { dataDir, podCidr, serviceCidr } = settings;
  const metrics = createEngineMetrics(signal);

  const [registry, runtime, network] = await together([
    openRegistry(settings, platform, closers, metrics.all),
    startRuntime(settings, platform, closers, signal, { metrics: metrics.node, waiting }),
    setUpNetwork({ dataDir, instance: dataDir, podCidr, serviceCidr, dnsIp, signal }),
  ]);
  checkPodGroups(settings, runtime.cgroupDriver);
  const [pressure, capacity, address] = await together([
    openPressure(settings, runtime.runtime, platform.timers, signal),
    nodeCapacity(settings),
    openNodeAddress(machineAddresses(network.gateway, signal)),
  ]);
  const shutdown = createShutdown(settings, platform.timers);
  const client = inProcessClient(registry.registry);
  closers.defer(() => ending.abort());
  const loops = { client, ...platform, signal };
  const node = lateNode();
  const port = await serveApi(settings, platform, closers, { ...registry, nodes: node.connection, metrics });
  const dns = {
    ip: dnsIp,
    port: DNS_PORT,
    clusterDomain: CLUSTER_DOMAIN,
    upstreamFrom: settings.resolvConf || MACHINE_RESOLV_CONF,
  };
  // Read before the node status reporter renews the Lease.
  const lastSignOfLife = await readLastSignOfLife(loops, settings.nodeName);
  const [agent, reporter] = await together([
    startNodeAgent({
      ...loops,
      runtime: runtime.runtime,
      runtimeName: runtime.name,
      ...agentSettings(settings, runtime),
      nodeIps: address.ips,
      ...{ capacity, lastSignOfLife },
      clusterDns: [dnsIp],
      clusterDomain: CLUSTER_DOMAIN,
      eviction: { pressure, containerUsage: runtime.runtime.containerUsage },
    }),
    startNodeStatus({
      ...loops,
      runtime: runtime.runtime,
      nodeName: settings.nodeName,
      podCidr,
      internalIp: address.read,
      capacity,
      version: `${KUBERNETES_VERSION}+lifepod.${LIFEPOD_VERSION}`,
      pressure,
      problems: shutdown.problems,
    }),
    startDns({ ...loops, ...dns }),
    startScheduler({ ...loops, schedulerName: 'default-scheduler' }),
    startControllers({
      ...loops,
      caPem: registry.pki.caCertificate,
      bootstrap: () => bootstrap(registry.registry, { serviceCidr, apiServerPort: port }),
      recordLimits: parseRecordLimits(settings.recordAge, settings.recordSize),
      folders: createLocalFolders(dataDir, settings.nodeName),
      terminatedPods: terminatedPods(settings),
    }),
  ]);
  startPodMetrics({ ...loops, nodeName: settings.nodeName, metrics: metrics.node });
  const reports = createNodeReports({
    ...loops,
    runtime: runtime.runtime,
    nodeName: settings.nodeName,
    ...{ pods: agent.pods, metrics: metrics.node, dataDir },
  });
  node.connect({ ...agent.connection, ...reports });
  runtime.onChange(() => void reporter.check());
  pressure.onChange(() => void reporter.check());
  agent.onImagesChange(reporter.imagesChanged);
  closers.defer(() => agent.flushed());
  await nodeReady(settings.nodeName, { ...loops, waiting });
  return { port, agent, shutDownNode: () => shutdown.begin(reporter, agent) };
}

interface OpenRegistry {
  registry: Registry;
  pki: Pki;
}

async function openRegistry(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
  metrics: Metrics,
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
  const measured = measuredStore(store, metrics);
  const registry = await createRegistry({ store: measured, kinds, timers, log, serviceCidr, issueToken: issue });
  closers.defer(() => registry.close());
  return { registry, pki };
}

/** Starts the API server, writes the kubeconfig and the record, and returns the port. */
async function serveApi(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
  { registry, pki, nodes, metrics }: OpenRegistry & { nodes: LateNode; metrics: EngineMetrics },
): Promise<number> {
  const { dataDir, serviceCidr } = settings;
  const version = LIFEPOD_VERSION;
  addStorageMetrics(metrics.all, registry, dataDir);
  const api = await startApiServer({
    ...{ backend: registry, kinds, nodes, pki, host: HOST, port: settings.port, version, timers, log },
    metrics: metrics.all,
  });
  closers.defer(() => api.close());
  await bootstrap(registry, { serviceCidr, apiServerPort: api.port });
  writeKubeconfig(kubeconfigPath(dataDir), { server: `https://${HOST}:${api.port}`, pki });
  writeEngineRecord(dataDir, recordOf(settings, api.port));
  return api.port;
}

/** Like Promise.all, but waits for all promises even if one rejects, so that everything they started can be stopped. */
async function together<T extends readonly unknown[]>(
  parts: readonly [...T],
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  const results = await Promise.allSettled(parts);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as {
    -readonly [I in keyof T]: Awaited<T[I]>;
  };
}
