/**
 * The engine: starts all parts of lifepod in one process, and stops them.
 *
 * Boundary: only this folder composes all the parts. It passes to each part the interfaces of the other parts that the part needs.
 * Invariants:
 *  1. The lock on the data folder is acquired before any part is started, and released last.
 *  2. If a step of the start fails, everything that was started before is stopped in reverse order.
 *  3. Stopping the engine leaves Pods running, and the next start adopts them. `lifepod down` and `lifepod shutdown-node` end the Pods
 *     before they stop the engine.
 */
import { flushCompileCache } from 'node:module';
import { dnsServiceAddress } from '../apiserver/admission/service-range.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { createSharedInformers } from '../client/shared-informers.ts';
import { startControllers } from '../controllers/controllers.ts';
import { setUpNetwork } from '../network/bridge.ts';
import { startDns } from '../network/dns.ts';
import type { NodeAgent } from '../node/agent.ts';
import { MACHINE_RESOLV_CONF } from '../node/container/node-resolver.ts';
import { readLastSignOfLife } from '../node/status/sign-of-life.ts';
import { createLocalFolders } from '../node/volumes/local-folders.ts';
import { dropBallast, keepBallast } from '../platform/disk-reserve.ts';
import { checkDataFormat, ensureDataDir, lockDataDir } from '../platform/files.ts';
import { onAbort } from '../platform/on-abort.ts';
import { ENGINE_OOM_SCORE, lowerOomScore } from '../platform/oom-score.ts';
import type { Platform } from '../platform/platform.ts';
import { raisePriority } from '../platform/processes.ts';
import { apiFor } from '../ports/api-for.ts';
import type { UserInfo } from '../ports/request.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { CLUSTER_DOMAIN, HOST, type OpenRegistry, openRegistry, serveApi } from './engine-api.ts';
import { createEngineMetrics } from './engine-metrics.ts';
import { checkPodGroups, checkResolvConf, createShutdown } from './engine-node.ts';
import { startRuntime } from './engine-runtime.ts';
import { checkMachine, checkPortFree } from './machine-checks.ts';
import { lateNode } from './node-placeholder.ts';
import { nodeReady, type Waiting } from './node-ready.ts';
import { terminatedPods } from './node-settings.ts';
import { parseRecordLimits } from './record-settings.ts';
import {
  readEngineRecord,
  recordOf,
  resolveSettings,
  type Settings,
  type UpOptions,
  usesPrivateContainerd,
  writeEngineRecord,
} from './settings.ts';
import { together } from './settle-all.ts';
import { connectNode, openMachine, type PartOptions, startNode } from './start-node.ts';
import { API_SERVER, clientFor, controllerUser, DNS, nodeUser, SCHEDULER } from './users.ts';

const DNS_PORT = 53;

export interface Engine {
  settings: Settings;
  /** The URL of the API server, such as https://127.0.0.1:6443. */
  server: string;
  /** Terminates the static Pods gracefully and starts no new ones. Resolves when all static Pods are removed. */
  endStaticPods(): Promise<void>;
  /**
   * Terminates all Pods for a shutdown of the machine, but keeps their objects. Resolves when all Pods have ended or their grace periods
   * are over, and the outcome is in the engine record.
   */
  shutDownNode(): Promise<void>;
  /** Resolves when the engine has stopped. The engine stops when the signal of startEngine() aborts. */
  stopped: Promise<void>;
}

/**
 * Starts the engine, and resolves when the node is Ready. If the engine cannot start, stops everything that was started and rejects.
 * `signal` stops the engine. `waiting` is called with each reason why the start takes long.
 */
export async function startEngine(
  options: UpOptions,
  platform: Platform,
  signal: AbortSignal,
  waiting: Waiting,
): Promise<Engine> {
  checkMachine(() => usesPrivateContainerd(options));
  // Options that are refused must not create the data folder.
  const settings = resolveSettings(options, readEngineRecord(options.dataDir));
  ensureDataDir(settings.dataDir);
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

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    onAbort(signal, resolve);
  });

interface StartedParts {
  port: number;
  agent: NodeAgent;
  shutDownNode: Engine['shutDownNode'];
}

/** Starts the parts, concurrently where they are independent, and adds the functions that stop them to `closers`. */
async function startParts(
  settings: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  stopping: AbortSignal,
  waiting: Waiting,
): Promise<StartedParts> {
  const ending = new AbortController();
  const signal = AbortSignal.any([stopping, ending.signal]);
  const { dataDir, podCidr, serviceCidr, nodeName } = settings;
  const dnsIp = dnsServiceAddress(serviceCidr);
  const metrics = createEngineMetrics(signal);

  const [opened, runtime, network] = await together([
    openRegistry(settings, platform, closers, metrics.all),
    startRuntime(settings, platform, closers, signal, { metrics: metrics.node, waiting }),
    setUpNetwork({ dataDir, instance: dataDir, podCidr, serviceCidr, dnsIp, signal }),
  ]);
  checkPodGroups(settings, runtime.cgroupDriver);
  const found = { runtime: runtime.runtime, gateway: network.gateway };
  const machine = await openMachine(settings, found, platform, signal);
  const shutdown = createShutdown(settings, platform.timers);
  closers.defer(() => ending.abort());

  const node = lateNode();
  const port = await serveApi(settings, platform, closers, { ...opened, nodes: node.connection, metrics });
  const options = {
    client: clientFor(opened.registry, nodeUser(nodeName)),
    informers: createSharedInformers({ client: clientFor(opened.registry, API_SERVER), ...platform }),
    ...platform,
    signal,
  };
  // This must precede startNode(), because the node status reporter renews the Lease that is read here.
  const lastSignOfLife = await readLastSignOfLife(options, nodeName);
  const [nodeParts] = await together([
    startNode(settings, options, { runtime, machine, shutdown, dnsIp, lastSignOfLife }),
    startClusterParts(settings, options, { ...opened, port, dnsIp }),
  ]);
  const { agent, reporter } = nodeParts;
  connectNode(settings, options, nodeParts, { node, runtime, pressure: machine.pressure, metrics: metrics.node });
  closers.defer(() => agent.flushed());
  await nodeReady(nodeName, { ...options, waiting });
  return { port, agent, shutDownNode: () => shutdown.begin(reporter, agent) };
}

/** Starts the parts that, in a cluster, do not run on every node: DNS, scheduler and controllers. */
async function startClusterParts(
  settings: Settings,
  options: PartOptions,
  { registry, catalog, pki, port, dnsIp }: OpenRegistry & { port: number; dnsIp: string },
): Promise<void> {
  const { dataDir, serviceCidr, nodeName } = settings;
  const as = (user: UserInfo): PartOptions => ({ ...options, client: clientFor(registry, user) });
  await together([
    startDns({
      ...as(DNS),
      ip: dnsIp,
      port: DNS_PORT,
      clusterDomain: CLUSTER_DOMAIN,
      upstreamFrom: settings.resolvConf || MACHINE_RESOLV_CONF,
    }),
    startScheduler({ ...as(SCHEDULER), schedulerName: 'default-scheduler' }),
    startControllers({
      optionsOf: (controller) => as(controllerUser(controller)),
      catalog,
      caPem: pki.caCertificate,
      bootstrap: () => bootstrap(apiFor(registry, API_SERVER), { serviceCidr, apiServerPort: port }),
      recordLimits: parseRecordLimits(settings.recordAge, settings.recordSize),
      folders: createLocalFolders(dataDir, nodeName),
      terminatedPods: terminatedPods(settings),
    }),
  ]);
}
