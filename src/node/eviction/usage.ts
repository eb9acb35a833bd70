/**
 * What the Pods of the node use of memory, disk and processes, as far as eviction wants to know it.
 * Boundary: asks the runtime and looks at folders; nothing is kept. Folders are walked one after the other, so that looking
 * costs little of the disk's time. What one Pod has made unreadable says nothing of the others.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import { type DiskUse, folderUsage } from '../usage/folder-usage.ts';
import { countProcesses } from '../usage/processes.ts';
import type { ContainerUse, PodUse } from './ranking.ts';

export interface UsagePorts {
  containerUsage(signal: AbortSignal): Promise<ContainerUsage[]>;
  /** The folder of a volume of the Pod. */
  volumePath(pod: Pod, volume: string): string;
  /** The folder of the Pod's logs. */
  logPath(pod: Pod): string;
  /** Something that the Pod has on the disk cannot be looked at. */
  unreadable(pod: Pod, error: Error): void;
}

export type Wanted = 'memory' | 'disk' | 'pids';

/** By Pod UID, of the Pods given. A Pod of which nothing runs has an entry as well, with its volumes and logs. */
export async function measure(
  pods: readonly Pod[],
  wanted: Wanted,
  ports: UsagePorts,
  signal: AbortSignal,
): Promise<Map<string, PodUse>> {
  const running = await ports.containerUsage(signal);
  const processes = wanted === 'pids' ? await countProcesses(running.map(({ id }) => id)) : undefined;
  const uses = new Map<string, PodUse>();
  for (const pod of pods) {
    signal.throwIfAborted();
    const uid = pod.metadata.uid ?? '';
    const containers = new Map<string, ContainerUse>();
    for (const { id, name, rootFs, workingSetBytes } of running.filter((each) => each.podUid === uid))
      containers.set(name, {
        memoryBytes: workingSetBytes,
        ...(rootFs === undefined ? {} : { rootFs: { bytes: rootFs.usedBytes, inodes: rootFs.inodesUsed } }),
        ...(processes === undefined ? {} : { processes: processes.get(id) ?? 0 }),
      });
    const volumes = new Map<string, DiskUse>();
    if (wanted === 'disk') await measureFolders(pod, { containers, volumes }, ports, signal);
    uses.set(uid, { containers, volumes });
  }
  return uses;
}

/** Logs, also of containers that have ended, and emptyDirs. */
async function measureFolders(
  pod: Pod,
  use: { containers: Map<string, ContainerUse>; volumes: Map<string, DiskUse> },
  ports: UsagePorts,
  signal: AbortSignal,
): Promise<void> {
  const unreadable = (error: Error): void => ports.unreadable(pod, error);
  const logs = ports.logPath(pod);
  for (const name of await readdir(logs).catch(() => [])) {
    const ofContainer = await folderUsage(join(logs, name), signal, unreadable);
    use.containers.set(name, { memoryBytes: 0, ...use.containers.get(name), logs: ofContainer });
  }
  for (const { name, emptyDir } of pod.spec?.volumes ?? [])
    if (emptyDir !== undefined)
      use.volumes.set(name, await folderUsage(ports.volumePath(pod, name), signal, unreadable));
}
