import { join } from 'node:path';
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import type { ContainerUsage, RuntimeUsage } from '../../runtime/runtime.ts';
import { containerLogPath } from '../container/container-config.ts';
import type { RuntimeView } from '../pod/worker/ports.ts';
import { type InterfaceUsage, readFolderSize, readInterfaces } from './machine-usage.ts';

export interface NodePod extends RuntimeView {
  pod: Pod;
  logDirectory: string;
}

/** `startedAt`: undefined if the runtime does not report the time. */
export interface UsedContainer {
  name: string;
  startedAt: Millis | undefined;
  image: string;
  usage: ContainerUsage;
}

export interface UsedPod {
  pod: Pod;
  logDirectory: string;
  containers: UsedContainer[];
  sandboxId: string | undefined;
}

/** Omits Pods without running containers. The containers are in the order of the spec. */
export function usedPods(pods: readonly NodePod[], usages: readonly ContainerUsage[]): UsedPod[] {
  const byId = new Map(usages.map((usage) => [usage.id, usage]));
  return pods.flatMap(({ pod, logDirectory, containers, sandboxes }) => {
    const used = containers.flatMap(({ id, name, startedAt, image }): UsedContainer[] => {
      const usage = byId.get(id);
      return usage === undefined ? [] : [{ name, startedAt, image, usage }];
    });
    if (used.length === 0) return [];
    const order = containersOf(pod).map(({ name }) => name);
    used.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
    return [{ pod, logDirectory, containers: used, sandboxId: sandboxes.find(({ ready }) => ready)?.id }];
  });
}

export interface PodNetworks {
  /** Discards the cached process IDs of other Pods' sandboxes. */
  keep(pods: readonly UsedPod[]): void;
  /** Resolves to undefined if the Pod uses the host network, or its network cannot be found. */
  interfaces(pod: UsedPod, signal: AbortSignal): Promise<InterfaceUsage[] | undefined>;
}

/** The process ID of a sandbox is cached, since it does not change during the life of the sandbox. */
export function createPodNetworks(runtime: RuntimeUsage): PodNetworks {
  const pids = new Map<string, number>();
  return {
    keep(pods) {
      const sandboxes = new Set(pods.map(({ sandboxId }) => sandboxId));
      for (const id of pids.keys()) if (!sandboxes.has(id)) pids.delete(id);
    },
    async interfaces({ pod, sandboxId }, signal) {
      if (sandboxId === undefined || pod.spec?.hostNetwork === true) return undefined;
      const pid = pids.get(sandboxId) ?? (await runtime.sandboxPid(sandboxId, signal));
      if (pid === undefined) return undefined;
      pids.set(sandboxId, pid);
      const found = await readInterfaces(pid);
      if (found === undefined) pids.delete(sandboxId);
      return found;
    },
  };
}

/** Includes the logs of the container's earlier runs. */
export const logSize = (logDirectory: string, container: string): ReturnType<typeof readFolderSize> =>
  readFolderSize(join(logDirectory, containerLogPath(container, 0), '..'));
