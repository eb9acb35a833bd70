/**
 * Measures the memory, disk space, inodes and processes that the Pods of the node use. A measurement walks through one folder at a time, so
 * that it puts little load on the disk. Unreadable files of one Pod do not affect the measurement of other Pods.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import { etcHostsFile, terminationMessagesFolder } from '../container/container-config.ts';
import { type DiskUse, folderUsage } from '../usage/folder-usage.ts';
import { countProcesses } from '../usage/processes.ts';
import type { ContainerUse, PodUse } from './ranking.ts';

export interface UsagePorts {
  containerUsage(signal: AbortSignal): Promise<ContainerUsage[]>;
  volumePath(pod: Pod, volume: string): string;
  logPath(pod: Pod): string;
  /** The folder contains the Pod's /etc/hosts and termination messages. */
  podPath(pod: Pod): string;
  /** Called when a measured file or folder of the Pod exists but cannot be read. */
  unreadable(pod: Pod, error: Error): void;
}

export type Wanted = 'memory' | 'disk' | 'pids';

/**
 * Resolves to the usage of the Pods by UID: of memory and root file systems; with `wanted` 'disk' also of logs, emptyDirs and /etc/hosts;
 * with 'pids' also of processes. A Pod without running containers also has an entry.
 */
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
    const uid = uidOf(pod);
    const containers = new Map<string, ContainerUse>();
    for (const { id, name, rootFs, workingSetBytes } of running.filter((each) => each.podUid === uid))
      containers.set(name, {
        memoryBytes: workingSetBytes,
        rootFs: rootFs && { bytes: rootFs.usedBytes, inodes: rootFs.inodesUsed },
        processes: processes && (processes.get(id) ?? 0),
      });
    const use: OnDisk = { containers, volumes: new Map() };
    if (wanted === 'disk') await measureFolders(pod, use, ports, signal);
    uses.set(uid, use);
  }
  return uses;
}

interface OnDisk extends PodUse {
  containers: Map<string, ContainerUse>;
  volumes: Map<string, DiskUse>;
}

async function measureFolders(pod: Pod, use: OnDisk, ports: UsagePorts, signal: AbortSignal): Promise<void> {
  const measured = (path: string): Promise<DiskUse> =>
    folderUsage(path, signal, (error) => ports.unreadable(pod, error));
  const folder = ports.podPath(pod);
  for (const path of [ports.logPath(pod), terminationMessagesFolder(folder)])
    for (const name of await readdir(path).catch(() => [])) {
      const { bytes, inodes } = await measured(join(path, name));
      const known = use.containers.get(name) ?? { memoryBytes: 0 };
      const logs = { bytes: bytes + (known.logs?.bytes ?? 0), inodes: inodes + (known.logs?.inodes ?? 0) };
      use.containers.set(name, { ...known, logs });
    }
  for (const { name, emptyDir } of pod.spec?.volumes ?? [])
    if (emptyDir !== undefined) use.volumes.set(name, await measured(ports.volumePath(pod, name)));
  use.etcHosts = await measured(etcHostsFile(folder));
}
