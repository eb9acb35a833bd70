/** What the engine hands to the node and its status alike: the pressure that it is under, and that the machine shuts down. */
import { existsSync } from 'node:fs';
import type { NodeAgent } from '../node/agent.ts';
import type { NodeAgentOptions } from '../node/agent-options.ts';
import { createNodePressure, type NodePressure } from '../node/eviction/pressure.ts';
import { type Capacity, readCapacity } from '../node/status/machine-facts.ts';
import type { NodeStatusReporter } from '../node/status/node-status.ts';
import { dropBallast, keepBallast } from '../platform/ballast.ts';
import { UserError } from '../platform/files.ts';
import type { Timers } from '../platform/platform.ts';
import type { ContainerRuntime } from '../runtime/runtime.ts';
import { SHUTTING_DOWN } from '../scheduling/node-taints.ts';
import type { EngineRuntime } from './engine-runtime.ts';
import { garbagePolicyOf } from './image-settings.ts';
import {
  allowedSysctls,
  evictionConfig,
  hasTerminatingPhase,
  maxPods,
  reservedResources,
  shutdownPeriods,
} from './node-settings.ts';
import { recordShutdown, type Settings } from './settings.ts';

/** Throws a UserError where a limit of Pods as a whole is asked for and they have no group that it can be set for. */
export function checkPodGroups(
  { podPidsLimit, containerRuntimeEndpoint }: Pick<Settings, 'podPidsLimit' | 'containerRuntimeEndpoint'>,
  driver: 'cgroupfs' | 'systemd' | undefined,
): void {
  if (podPidsLimit < 0 || driver !== undefined) return;
  throw new UserError(
    `--pod-pids-limit ${podPidsLimit} cannot be kept: the runtime at ${containerRuntimeEndpoint} does not tell how it makes control groups; start with --pod-pids-limit -1, or without --container-runtime-endpoint`,
  );
}

/** Throws a UserError where Pods are to take a resolver configuration that is not there. */
export function checkResolvConf({ resolvConf }: Pick<Settings, 'resolvConf'>): void {
  if (resolvConf !== '' && !existsSync(resolvConf))
    throw new UserError(`--resolv-conf ${resolvConf} is not there: name a file, or '' for the machine's configuration`);
}

/** The settings of the node agent. */
export const agentSettings = (settings: Settings, runtime: EngineRuntime) =>
  ({
    nodeName: settings.nodeName,
    dataDir: settings.dataDir,
    maxGracePeriodExtensionSeconds: settings.maxGracePeriodExtension,
    terminatingPhase: hasTerminatingPhase(settings),
    maxParallelImagePulls: settings.maxParallelImagePulls,
    imageGarbage: { policy: garbagePolicyOf(settings), keep: runtime.sandboxImages },
    ...(runtime.cgroupDriver === undefined
      ? {}
      : { podCgroups: { podPidsLimit: settings.podPidsLimit, driver: runtime.cgroupDriver } }),
    allowedUnsafeSysctls: allowedSysctls(settings),
    resolvConf: settings.resolvConf,
  }) satisfies Partial<NodeAgentOptions>;

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

/** Rejects with a UserError where more is reserved than the machine has. */
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
  /** For the node's status. */
  problems(): string[];
  /** Ends every Pod, once the node's status tells that it shuts down; and writes down what came of it. */
  begin(reporter: NodeStatusReporter, agent: NodeAgent): Promise<void>;
}

/** Where nothing can be written, the machine does not wait for what there was to tell. */
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
    },
  };
}
