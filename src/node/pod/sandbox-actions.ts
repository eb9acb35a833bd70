/** Creates, stops and removes the sandboxes of Pods, and with them creates and releases the Pods' control groups. */

import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { ContainerRuntime, SandboxConfig } from '../../runtime/runtime.ts';
import type { EnvironmentSource } from '../container/configuration-source.ts';
import { sandboxConfig } from '../container/container-config.ts';
import { podDnsConfig } from '../container/dns-config.ts';
import { sandboxMetadata } from '../container/sandbox-metadata.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import type { PodLimits } from './pod-limits.ts';

export interface SandboxPorts {
  runtime: Pick<ContainerRuntime, 'runSandbox' | 'stopSandbox' | 'removeSandbox'>;
  environment: EnvironmentSource;
  /** Creates the folder of the Pod's logs. */
  prepareSandbox(config: SandboxConfig): void;
  /** Emits a Warning Event on the Pod. */
  warn(pod: Pod, reason: string, message: string): void;
  /** Manages the Pods' control groups. Absent if the runtime chooses the control groups. */
  cgroups?: Pick<PodCgroups, 'create' | 'release' | 'precedesSandbox'> | undefined;
}

export interface SandboxActions {
  create(pod: Pod, attempt: number, signal: AbortSignal): Promise<void>;
  /** Stops the sandbox. Also releases the Pod's control group, unless the Pod is being deleted; remove() then releases it. */
  stop(pod: Pod, id: string, signal: AbortSignal): Promise<void>;
  /**
   * Removes the sandbox. At the same time, releases the Pod's control group if the Pod is being deleted and this engine has not
   * written the limits of the group since the last stop() or, without a stop(), since the engine started.
   */
  remove(pod: Pod, id: string, signal: AbortSignal): Promise<void>;
}

export function createSandboxActions(ports: SandboxPorts, limits: PodLimits): SandboxActions {
  const { runtime, cgroups } = ports;
  return {
    async create(pod, attempt, signal) {
      const env = await ports.environment(pod, undefined, signal);
      const config = sandboxConfig(pod, attempt, env);
      for (const cut of podDnsConfig(pod, env.dns).cut) ports.warn(pod, 'DNSConfigForming', cut);
      const { cut } = sandboxMetadata(pod);
      if (cut !== undefined) ports.warn(pod, 'SandboxMetadataCut', cut);
      ports.prepareSandbox(config);
      if (cgroups?.precedesSandbox === true) {
        await limits.write(pod);
        await runtime.runSandbox(config, signal);
      } else await Promise.all([runtime.runSandbox(config, signal), limits.write(pod)]);
    },
    async stop(pod, id, signal) {
      await runtime.stopSandbox(id, signal);
      limits.forget(uidOf(pod));
      if (!isDeleted(pod)) await cgroups?.release(pod);
    },
    async remove(pod, id, signal) {
      const isLast = isDeleted(pod) && !limits.isWritten(uidOf(pod));
      const release = isLast ? cgroups?.release(pod) : undefined;
      for (const result of await Promise.allSettled([runtime.removeSandbox(id, signal), release]))
        if (result.status === 'rejected') throw result.reason;
    },
  };
}

const isDeleted = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
