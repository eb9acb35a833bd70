/** Checks settings of the node, reads its capacity, and creates its pressure, DNS and shutdown for the engine. */
import { join } from 'node:path';
import { readProblem } from '../machinery/read-problem.ts';
import { type Dns, startDns } from '../network/dns/dns.ts';
import type { NodeAgent } from '../node/agent.ts';
import type { NodeAgentOptions } from '../node/agent-options.ts';
import { MACHINE_RESOLV_CONF, RESOLVED_CONF } from '../node/container/node-resolver.ts';
import { createNodePressure, type NodePressure } from '../node/eviction/pressure.ts';
import { ROTATION_LIMITS } from '../node/logs/log-rotation.ts';
import { type Capacity, readCapacity } from '../node/status/machine-facts.ts';
import type { NodeStatusReporter } from '../node/status/node-status.ts';
import { dropBallast, keepBallast } from '../platform/disk-reserve.ts';
import { ensurePrivateFolder, UserError } from '../platform/files.ts';
import { readTextFile } from '../platform/folders/text-file.ts';
import type { Timers } from '../platform/platform.ts';
import { containerdPaths } from '../runtime/containerd/paths.ts';
import type { ContainerRuntime } from '../runtime/runtime.ts';
import { SHUTTING_DOWN } from '../scheduling/node-taints.ts';
import { removeUserKubeconfigs } from './certificates/user-kubeconfigs.ts';
import { CLUSTER_DOMAIN } from './engine-api.ts';
import type { EngineRuntime } from './engine-runtime.ts';
import { garbagePolicyOf } from './image-settings.ts';
import { dnsProcesses, dnsSocket } from './leftovers.ts';
import {
  allowedSysctls,
  evictionConfig,
  hasTerminatingPhase,
  maxPods,
  reservedResources,
  shutdownPeriods,
} from './node-settings.ts';
import { recordShutdown, type Settings } from './settings.ts';
import type { PartOptions } from './start-node.ts';

/**
 * Throws a UserError if --pod-pids-limit cannot be enforced: without a cgroup driver reported by the runtime, lifepod creates no control
 * groups for Pods.
 */
export function checkPodGroups(
  { podPidsLimit, containerRuntimeEndpoint }: Pick<Settings, 'podPidsLimit' | 'containerRuntimeEndpoint'>,
  driver: 'cgroupfs' | 'systemd' | undefined,
): void {
  if (podPidsLimit < 0 || driver !== undefined) return;
  throw new UserError(
    `--pod-pids-limit ${podPidsLimit} cannot be enforced: the runtime at ${containerRuntimeEndpoint} does not report its cgroup driver; start with --pod-pids-limit -1`,
  );
}

/** Throws a UserError if the file that --resolv-conf names cannot be read. An empty option stands for the machine's file. */
export function checkResolvConf({ resolvConf }: Pick<Settings, 'resolvConf'>): void {
  if (resolvConf === '') return;
  try {
    readTextFile(resolvConf);
  } catch (error) {
    throw new UserError(
      `--resolv-conf ${resolvConf} ${readProblem(error)}: give an existing file, or '' for the machine's configuration`,
    );
  }
}

export const agentSettings = (settings: Settings, { cgroupDriver, sandboxImages }: EngineRuntime) =>
  ({
    nodeName: settings.nodeName,
    dataDir: settings.dataDir,
    maxGracePeriodExtensionSeconds: settings.maxGracePeriodExtension,
    terminatingPhase: hasTerminatingPhase(settings),
    maxParallelImagePulls: settings.maxParallelImagePulls,
    imageGarbage: { policy: garbagePolicyOf(settings), keep: sandboxImages },
    podCgroups: cgroupDriver === undefined ? undefined : { podPidsLimit: settings.podPidsLimit, driver: cgroupDriver },
    allowedUnsafeSysctls: allowedSysctls(settings),
    resolvConf: settings.resolvConf,
  }) satisfies Partial<NodeAgentOptions>;

/**
 * Observes the memory and process IDs of the machine, the disk of the data folder and, if the runtime reports the folder of its images, the
 * disk of the images.
 */
export async function openPressure(
  settings: Settings,
  runtime: ContainerRuntime,
  timers: Timers,
  signal: AbortSignal,
): Promise<NodePressure> {
  const { dataDir } = settings;
  const imageDir = await runtime.imageFolder?.(signal).catch(() => undefined);
  const folders = imageDir === undefined ? { dataDir } : { dataDir, imageDir };
  const pressure = await createNodePressure({ config: evictionConfig(settings), folders, timers });
  pressure.onChange(() => keepBallast(dataDir));
  return pressure;
}

/** Rejects with a UserError, for example if the settings reserve more than the machine has. */
export const nodeCapacity = (settings: Settings): Promise<Capacity> =>
  readCapacity({
    folder: settings.dataDir,
    reserved: reservedResources(settings),
    thresholds: evictionConfig(settings).thresholds,
    maxPods: maxPods(settings),
  }).catch((error: Error) => {
    throw new UserError(error.message);
  });

export interface Shutdown {
  /** Returns the reason for the condition Ready=False; empty before begin(). */
  problems(): string[];
  /** Terminates every Pod, and writes the outcome into the engine record. Removes the copies of the kubeconfig, as `lifepod down` does. */
  begin(reporter: NodeStatusReporter, agent: NodeAgent): Promise<void>;
}

/** How long a shutdown waits for writes of Events and records. These writes are retried as long as the store cannot be written. */
const FLUSH_MILLIS = 5_000;

export function createShutdown(settings: Settings, timers: Timers): Shutdown {
  let begun = false;
  return {
    problems: () => (begun ? [SHUTTING_DOWN] : []),
    async begin(reporter, agent) {
      begun = true;
      dropBallast(settings.dataDir);
      await reporter.check();
      const left = await agent.shutDown(shutdownPeriods(settings));
      const enough = Promise.withResolvers<void>();
      const timer = timers.at(timers.now() + FLUSH_MILLIS, enough.resolve);
      await Promise.race([agent.flushed(), enough.promise]);
      timer.cancel();
      const podsLeft = left.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
      recordShutdown(settings.dataDir, { podsLeft });
      removeUserKubeconfigs(settings.dataDir);
    },
  };
}

const DNS_PORT = 53;

/**
 * Starts the DNS process, or connects to the one that an earlier engine has started. A process that this engine has started ends if the
 * engine stops before `isReady` returns true, because no Pods use the process.
 */
export async function startEngineDns(
  { dataDir, resolvConf }: Settings,
  options: PartOptions,
  dnsIp: string,
  closers: AsyncDisposableStack,
  isReady: () => boolean,
): Promise<Dns> {
  ensurePrivateFolder(containerdPaths(dataDir).run);
  const wasRunning = dnsProcesses(dataDir).length > 0;
  const ownConf = resolvConf === undefined || resolvConf === '';
  const dns = await startDns({
    ...options,
    addresses: [dnsIp],
    port: DNS_PORT,
    clusterDomain: CLUSTER_DOMAIN,
    resolvConf: ownConf ? MACHINE_RESOLV_CONF : resolvConf,
    behindStubs: ownConf ? RESOLVED_CONF : undefined,
    socket: dnsSocket(dataDir),
    logFile: join(dataDir, 'dns.log'),
  });
  closers.defer(() => (wasRunning || isReady() ? undefined : dns.stop()));
  return dns;
}

const MEBIBYTE = 1024 * 1024;

/** Parses pairs such as `memory.available<100Mi,nodefs.available<10%`. Returns undefined for an empty text. */
function mapOf(text: string, separator: '<' | '='): Record<string, string> | undefined {
  if (text === '') return undefined;
  const pairs = text.split(',').map((pair) => {
    const at = pair.indexOf(separator);
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
  });
  return Object.fromEntries(pairs);
}

const listOf = (text: string): string[] | undefined => (text === '' ? undefined : text.split(','));

/**
 * Returns the settings in the form of upstream's kubelet, for the document /configz. Source: KubeletConfiguration of
 * kubelet.config.k8s.io/v1beta1 of v1.33.
 */
export function kubeletConfiguration(settings: Settings, dnsIp: string): Record<string, unknown> {
  return {
    staticPodPath: `${settings.dataDir}/manifests`,
    clusterDomain: CLUSTER_DOMAIN,
    clusterDNS: [dnsIp],
    maxPods: Number(settings.maxPods),
    podPidsLimit: settings.podPidsLimit,
    resolvConf: settings.resolvConf || undefined,
    containerRuntimeEndpoint: settings.containerRuntimeEndpoint,
    containerLogMaxSize: `${ROTATION_LIMITS.maxBytes / MEBIBYTE}Mi`,
    containerLogMaxFiles: ROTATION_LIMITS.maxFiles,
    maxParallelImagePulls: settings.maxParallelImagePulls,
    imageMinimumGCAge: settings.minimumImageTtlDuration,
    imageMaximumGCAge: settings.imageMaximumGcAge,
    imageGCHighThresholdPercent: settings.imageGcHighThreshold,
    imageGCLowThresholdPercent: settings.imageGcLowThreshold,
    evictionHard: mapOf(settings.evictionHard, '<'),
    evictionSoft: mapOf(settings.evictionSoft, '<'),
    evictionSoftGracePeriod: mapOf(settings.evictionSoftGracePeriod, '='),
    evictionMinimumReclaim: mapOf(settings.evictionMinimumReclaim, '='),
    evictionMaxPodGracePeriod: Number(settings.evictionMaxPodGracePeriod),
    evictionPressureTransitionPeriod: settings.evictionPressureTransitionPeriod,
    systemReserved: mapOf(settings.systemReserved, '='),
    kubeReserved: mapOf(settings.kubeReserved, '='),
    allowedUnsafeSysctls: listOf(settings.allowedUnsafeSysctls),
    shutdownGracePeriod: settings.shutdownGracePeriod,
    shutdownGracePeriodCriticalPods: settings.shutdownGracePeriodCriticalPods,
  };
}
