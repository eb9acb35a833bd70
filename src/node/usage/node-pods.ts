/**
 * Joins the node's Pods with the usage of their running containers, and reads the usage of their networks and log files, for the
 * reports that contain usage.
 */
import { join } from 'node:path';
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import type { ContainerUsage, RuntimeUsage } from '../../runtime/runtime.ts';
import { containerLogPath } from '../container/container-config.ts';
import type { RuntimeView } from '../pod/worker/ports.ts';
import { type InterfaceUsage, readFolderSize, readInterfaces } from './machine-usage.ts';

/** A Pod with its sandboxes and containers in the runtime. */
export interface NodePod extends RuntimeView {
  pod: Pod;
  logDirectory: string;
}

/** A running container with its usage. `startedAt` is undefined if the runtime does not report the time. */
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
  /** The ID of the ready sandbox; undefined if no sandbox is ready. */
  sandboxId: string | undefined;
}

/** Returns the Pods that have a running container among `usages`, with their running containers in the order of the spec. */
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
  /** Discards the cached process IDs of all sandboxes except those of `pods`. */
  keep(pods: readonly UsedPod[]): void;
  /** Resolves to the network interfaces of the Pod; undefined if the Pod uses the host network, or its network cannot be found. */
  interfaces(pod: UsedPod, signal: AbortSignal): Promise<InterfaceUsage[] | undefined>;
}

/**
 * Creates the reader of the Pods' networks. It caches the process ID of each sandbox, which does not change during the life of the
 * sandbox.
 */
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

/** Returns the disk usage and the number of a container's log files, including the logs of its earlier runs. */
export const logSize = (logDirectory: string, container: string): ReturnType<typeof readFolderSize> =>
  readFolderSize(join(logDirectory, containerLogPath(container, 0), '..'));
