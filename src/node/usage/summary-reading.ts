import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { parseQuantity, quantityValue } from '../../machinery/quantity.ts';
import { containersByName } from '../container/by-name.ts';
import { etcHostsFile, terminationMessagesFolder } from '../container/container-config.ts';
import { type DiskUse, folderUsage } from './folder-usage.ts';
import { readDiskUsage, readMachineInterfaces, readProcessLimits } from './machine-usage.ts';
import { logSize, type PodNetworks, type UsedContainer, type UsedPod } from './node-pods.ts';
import { countProcesses } from './processes.ts';
import { containerRate, machineRate, type SamplePair } from './sampler.ts';
import type { SummaryContainer, SummaryFacts, SummaryPod } from './summary.ts';
import type { VolumeReader } from './volume-usage.ts';

export interface SummaryPorts {
  /** On the disk that holds volumes and logs. */
  dataDir: string;
  /**
   * On the disk that holds images and the root file systems of containers; undefined if the runtime reports none. In that case, the disk of
   * `dataDir` is assumed to hold them.
   */
  imageFolder: string | undefined;
  /** The folder contains the Pod's volumes, /etc/hosts and termination messages. */
  podFolder(podUid: string): string;
  networks: PodNetworks;
  volumes: VolumeReader;
}

export async function readSummaryFacts(
  pair: SamplePair,
  usedPods: readonly UsedPod[],
  ports: SummaryPorts,
  signal: AbortSignal,
): Promise<Omit<SummaryFacts, 'node' | 'now'>> {
  const processCounts = await countProcesses(pair.last.containers.map(({ id }) => id));
  const readPod = async (used: UsedPod): Promise<SummaryPod> => ({
    used,
    processes: used.containers.reduce((sum, { usage }) => sum + (processCounts.get(usage.id) ?? 0), 0),
    interfaces: await ports.networks.interfaces(used, signal),
    containers: await Promise.all(used.containers.map((container) => readContainer(pair, used, container))),
    volumes: await ports.volumes.read(used.pod),
    files: await ownFiles(ports.podFolder(uidOf(used.pod)), signal),
  });
  const [disk, runtimeDisk, interfaces, processes, pods] = await Promise.all([
    readDiskUsage(ports.dataDir),
    readDiskUsage(ports.imageFolder ?? ports.dataDir),
    readMachineInterfaces(),
    readProcessLimits(),
    Promise.all(usedPods.map(readPod)),
  ]);
  const { machine } = pair.last;
  return { machine, cpuNanoCores: machineRate(pair), interfaces, disk, runtimeDisk, processes, pods };
}

async function readContainer(
  pair: SamplePair,
  { pod, logDirectory }: UsedPod,
  container: UsedContainer,
): Promise<SummaryContainer> {
  const { name, startedAt, usage } = container;
  return {
    ...container,
    cpuNanoCores: containerRate(pair, usage, startedAt),
    logs: await logSize(logDirectory, name),
    memoryLimitBytes: memoryLimit(pod, name),
  };
}

function memoryLimit(pod: Pod, container: string): number | undefined {
  const limit = parseQuantity(containersByName(pod).get(container)?.resources?.limits?.['memory'] ?? '');
  return limit === undefined ? undefined : Number(quantityValue(limit));
}

async function ownFiles(podFolder: string, signal: AbortSignal): Promise<DiskUse> {
  const hosts = await folderUsage(etcHostsFile(podFolder), signal);
  const messages = await folderUsage(terminationMessagesFolder(podFolder), signal);
  return { bytes: hosts.bytes + messages.bytes, inodes: hosts.inodes + messages.inodes };
}
