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
  prepareSandbox(config: SandboxConfig): void;
  warn(pod: Pod, reason: string, message: string): void;
  /** Absent if the runtime chooses the control groups. */
  cgroups?: Pick<PodCgroups, 'create' | 'release' | 'precedesSandbox'> | undefined;
}

export interface SandboxActions {
  create(pod: Pod, attempt: number, signal: AbortSignal): Promise<void>;
  /** Also releases the Pod's control group, unless the Pod is being deleted; remove() then releases it. */
  stop(pod: Pod, id: string, signal: AbortSignal): Promise<void>;
  /** Also releases the control group of a Pod that is being deleted, unless limits for another sandbox were written. */
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
