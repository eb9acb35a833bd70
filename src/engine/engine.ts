/**
 * Starts all parts of the engine in this process, and stops them.
 *
 * Invariants:
 *  1. The lock on the data folder is acquired before any part is started. Only the exit of the process releases it, so that no file of the
 *     folder is open any more when another process gets the lock.
 *  2. If a step of the start fails, everything that was started before is stopped in reverse order, and a first start removes what it has
 *     created (for exceptions, see start/first-start.ts).
 *  3. Stopping the engine leaves Pods running, and the next start adopts them. `lifepod down` and `lifepod shutdown-node` end the Pods
 *     before they stop the engine.
 */
import { flushCompileCache } from 'node:module';
import { dnsServiceAddress } from '../apiserver/admission/service-range.ts';
import { readConfiguration } from '../apiserver/encryption/read-configuration.ts';
import { createAuthority } from '../apiserver/pki/authority.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { ensureDnsService } from '../apiserver/registry/dns-service.ts';
import { ensureKubernetesEndpoints } from '../apiserver/registry/system-endpoints/kubernetes-endpoints.ts';
import { createSharedInformers, type SharedInformers } from '../client/shared-informers.ts';
import type { Pause } from '../client/work-queue.ts';
import { startControllers } from '../controllers/controllers.ts';
import type { ApiAddresses } from '../network/api-address.ts';
import type { Dns } from '../network/dns/dns.ts';
import type { PodNetwork } from '../network/pod-network/pod-network.ts';
import { type RunningProxy, startProxy } from '../network/proxy/proxy.ts';
import { readLastSignOfLife } from '../node/status/sign-of-life.ts';
import { createLocalFolders } from '../node/volumes/local-folders.ts';
import { dropBallast, keepBallast } from '../platform/disk-reserve.ts';
import { ensureDataDir } from '../platform/files.ts';
import { machineClock } from '../platform/node-js.ts';
import { aborted } from '../platform/on-abort.ts';
import { ENGINE_OOM_SCORE, lowerOomScore } from '../platform/oom-score.ts';
import type { Platform } from '../platform/platform.ts';
import { raisePriority } from '../platform/processes.ts';
import { together } from '../platform/settle.ts';
import { apiFor } from '../ports/api-for.ts';
import { API_SERVER, type UserInfo } from '../ports/request.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { requireAttachment } from './attached-sandboxes.ts';
import { checkAuditPolicy } from './audit/audit-log.ts';
import { createAuthorizers } from './authorization/authorizers.ts';
import { createComponents } from './authorization/components.ts';
import { checkDataFormat, migrate } from './data-folder/format.ts';
import { lockForStart, recordStopping } from './data-folder/lock-line.ts';
import { completeRestore } from './data-folder/replacement.ts';
import { createWorkloadsEnd } from './ending/workloads-end.ts';
import { type OpenRegistry, openRegistry, serveApi } from './engine-api.ts';
import { createEngineMetrics } from './engine-metrics.ts';
import { apiAt, checkNetwork, startNetwork } from './engine-network.ts';
import { checkPodGroups, checkResolvConf, createShutdown, startEngineDns } from './engine-node.ts';
import { startRuntime } from './engine-runtime.ts';
import { checkMachine } from './machine-checks.ts';
import { lateNode } from './node-placeholder.ts';
import { nodeReady, type StartReports } from './node-ready.ts';
import { terminatedPods } from './node-settings.ts';
import { addressForPods, HOST, signingMillis } from './options/api-settings.ts';
import { hasEngineOptions } from './options/different-options.ts';
import { parseRecordLimits } from './options/record-settings.ts';
import { resolveSettings, type Settings, type UpOptions, usesPrivateContainerd } from './settings.ts';
import { openDataFolder, type StartProgress, settledRecord } from './start/first-start.ts';
import { startWarnings } from './start/start-warnings.ts';
import { refuseUnusableStart } from './start/usable-folder.ts';
import { connectNode, openMachine, type PartOptions, startNode } from './start-node.ts';
import {
  CONTROLLER_MANAGER,
  clientFor,
  controllerUser,
  DNS,
  NETWORK_POLICIES,
  nodeUser,
  PROXY,
  SCHEDULER,
} from './users.ts';

export interface Engine {
  settings: Settings;
  server: string;
  /** Sentences for the user about obstacles for Pods on this machine, such as a firewall. */
  warnings: readonly string[];
  /**
   * Terminates all Pods for a shutdown of the machine, but keeps their objects. Resolves when all Pods have ended or their grace periods
   * are over, and the outcome is in the engine record.
   */
  shutDownNode(): Promise<void>;
  stopped: Promise<void>;
}

/**
 * Resolves when the node is Ready. If the engine cannot start, stops everything that was started and rejects. An abort of `signal` stops
 * the engine.
 */
export async function startEngine(
  options: UpOptions,
  platform: Platform,
  signal: AbortSignal,
  reports: StartReports,
): Promise<Engine> {
  checkMachine(() => usesPrivateContainerd(options));
  checkDataFormat(options.dataDir);
  completeRestore(options.dataDir);
  // The options are checked before the data folder is created, so that a refused option leaves no folder.
  const record = settledRecord(options.dataDir);
  const settings = resolveSettings(options, record);
  await checkAuditPolicy(settings);
  const { encryptionProviderConfig: keys } = settings;
  if (keys !== '') await readConfiguration(settings.dataDir, keys, keys === record?.encryptionProviderConfig);
  checkResolvConf(settings);
  refuseUnusableStart({ ...options, dataDir: settings.dataDir }, record);
  const created = ensureDataDir(settings.dataDir);
  raisePriority();
  lowerOomScore(process.pid, ENGINE_OOM_SCORE);
  const closers = new AsyncDisposableStack();
  let progress: StartProgress | undefined;
  try {
    lockForStart(settings.dataDir, options.forSessions === true ? 'session' : 'engine');
    reports.locked?.();
    dropBallast(settings.dataDir);
    progress = await openDataFolder(settings, record, created, platform);
    await migrate(settings.dataDir, platform.log);
    const forSessions = options.forSessions === true && !hasEngineOptions(options);
    await checkNetwork({ ...settings, forSessions }, record, signal);
    signal.throwIfAborted();
    progress.begin();
    const warnings = startWarnings(settings, platform, signal);
    const { port, ...parts } = await startParts(settings, platform, closers, signal, { ...reports, progress });
    progress.succeed();
    flushCompileCache();
    keepBallast(settings.dataDir);
    return {
      settings,
      server: `https://${HOST}:${port}`,
      warnings: await warnings,
      ...parts,
      stopped: stopped(settings.dataDir, closers, signal),
    };
  } catch (error) {
    await closers.disposeAsync();
    await progress?.undo();
    throw error;
  }
}

/** Stops the engine when the signal aborts. */
async function stopped(dataDir: string, closers: AsyncDisposableStack, signal: AbortSignal): Promise<void> {
  await aborted(signal);
  recordStopping(dataDir);
  await closers.disposeAsync();
}

type StartedParts = Pick<Engine, 'shutDownNode'> & { port: number };

async function startParts(
  settings: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  stopping: AbortSignal,
  { waiting, listening, ending: changed, progress }: StartReports & { progress: StartProgress },
): Promise<StartedParts> {
  const ending = new AbortController();
  // If one of the first parts cannot be started, the others must end, too.
  closers.defer(() => ending.abort());
  const noMorePods = createWorkloadsEnd({ log: platform.log, stopping, changed: changed ?? (() => undefined) });
  const signal = AbortSignal.any([stopping, ending.signal]);
  const dnsIp = dnsServiceAddress(settings.serviceCidr);
  const metrics = createEngineMetrics(signal);

  const [opened, runtime, network] = await together([
    openRegistry(settings, platform, closers, metrics.all, progress),
    startRuntime(settings, platform, closers, signal, { metrics: metrics.node, waiting }),
    startNetwork(settings, platform, signal),
  ]);
  checkPodGroups(settings, runtime.cgroupDriver);
  const found = { runtime: runtime.runtime, gateway: network.gateway };
  const machine = await openMachine(settings, found, platform, signal);
  const shutdown = createShutdown(settings, platform.timers);
  closers.defer(() => ending.abort());

  const node = lateNode();
  const protect = (port: number): Promise<void> => network.protectApi(apiAt(settings, port));
  const port = await serveApi(settings, platform, closers, {
    ...opened,
    nodes: node.connection,
    metrics,
    progress,
    listening,
    protect,
    endWorkloads: noMorePods.begin,
  });
  const informers = createSharedInformers({ client: clientFor(opened.registry, API_SERVER), ...platform });
  // This call must follow serveApi(), which creates and updates the roles, so that the first decision uses current roles.
  const as = partsOf(opened, informers, platform, signal);
  const options = as(nodeUser(settings.nodeName));
  const services = startServices(settings, as(PROXY), { ...network, dnsIp, api: apiAt(settings, port) });
  // With the machine's own runtime, the runtime and not lifepod sets up the network of Pods.
  if (settings.containerRuntimeEndpoint === undefined) {
    const { nodeName } = settings;
    requireAttachment(runtime.runtime, network, { ...as(NETWORK_POLICIES), nodeName, services });
  }
  // This call must precede startNode(), because the node status reporter renews the Lease that is read here.
  const lastSignOfLife = await readLastSignOfLife(options, settings.nodeName);
  let isReady = false;
  const [nodeParts, dns] = await together([
    startNode(settings, options, { runtime, machine, shutdown, dnsIp, lastSignOfLife }),
    startNetworkParts(settings, as(DNS), { dnsIp, closers, services, isReady: () => isReady }),
    startClusterParts(settings, as, { ...opened, port, noMorePods }),
  ]);
  const { agent, reporter } = nodeParts;
  connectNode(settings, options, nodeParts, { ...machine, node, runtime, informers, metrics: metrics.node, dnsIp });
  noMorePods.connect(agent.staticPods);
  closers.defer(() => agent.flushed());
  await nodeReady(settings.nodeName, { ...options, waiting });
  isReady = true;
  return { port, shutDownNode: () => shutdown.begin(reporter, agent).then(() => dns.stop()) };
}

/** Returns a function that returns the options of a part that calls the API with the rights of `user`. */
function partsOf(
  { registry, authorization, onRefusal }: OpenRegistry,
  informers: SharedInformers,
  platform: Platform,
  signal: AbortSignal,
): (user: UserInfo, reader?: UserInfo) => PartOptions {
  authorization.connect(createAuthorizers({ informers, signal }));
  const authorizer = authorization.components;
  const components = createComponents({ registry, informers, authorizer, onRefusal, ...platform });
  return (user, reader) => ({ ...components(user, reader), ...platform, signal });
}

type ServiceParts = Pick<PodNetwork, 'rules' | 'routes'> & { dnsIp: string; api: ApiAddresses };

function startServices(
  settings: Settings,
  options: PartOptions,
  { rules, routes, dnsIp, api }: ServiceParts,
): RunningProxy {
  const { nodeName, podCidr, serviceCidr } = settings;
  return startProxy({
    ...options,
    table: rules,
    routes,
    nodeName,
    podCidrs: podCidr.split(','),
    serviceCidrs: serviceCidr.split(','),
    reservedIps: [dnsIp],
    api,
  });
}

interface NetworkParts {
  dnsIp: string;
  closers: AsyncDisposableStack;
  services: RunningProxy;
  isReady: () => boolean;
}

async function startNetworkParts(
  settings: Settings,
  options: PartOptions,
  { dnsIp, closers, services, isReady }: NetworkParts,
): Promise<Dns> {
  const [dns] = await together([startEngineDns(settings, options, dnsIp, closers, isReady), services.attempted]);
  return dns;
}

async function startClusterParts(
  settings: Settings,
  as: (user: UserInfo, reader?: UserInfo) => PartOptions,
  parts: OpenRegistry & { port: number; noMorePods: Pause },
): Promise<void> {
  const { registry, catalog, pki, tokens, authorization, port, noMorePods } = parts;
  const { dataDir, serviceCidr, nodeName } = settings;
  await together([
    startScheduler({ ...as(SCHEDULER), schedulerName: 'default-scheduler' }),
    startControllers({
      optionsOf: (controller) => as(controllerUser(controller), CONTROLLER_MANAGER),
      catalog,
      caPem: pki.caCertificate,
      issueLegacyToken: tokens.issueLegacy,
      bootstrap: async () => {
        const api = apiFor(registry, API_SERVER);
        await bootstrap(api, { serviceCidr, apiServerPort: port });
        // The start itself does not create the DNS Service, and only logs an error about the endpoints. An obstacle, such as a user's
        // ResourceQuota, therefore does not prevent the start.
        await together([
          ensureDnsService(api, serviceCidr),
          ensureKubernetesEndpoints(api, { ip: addressForPods(settings), port }),
        ]);
      },
      recordLimits: parseRecordLimits(settings.recordAge, settings.recordSize),
      folders: createLocalFolders(dataDir, nodeName),
      authority: createAuthority(pki, signingMillis(settings), machineClock.now),
      authorizer: authorization.clients,
      terminatedPods: terminatedPods(settings),
      noMorePods,
    }),
  ]);
}
