/** The functions are pure. Source: k8s.io/kubelet stats/v1alpha1 of v1.33 (names and meaning of the fields). */
import { uidOf } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import type { DiskUse } from './folder-usage.ts';
import type { DiskUsage, InterfaceUsage, MachineUsage, ProcessLimits } from './machine-usage.ts';
import type { UsedContainer, UsedPod } from './node-pods.ts';
import type { VolumeUsage } from './volume-usage.ts';

export interface SummaryFacts {
  node: string;
  now: Millis;
  machine: MachineUsage;
  cpuNanoCores: number;
  interfaces: readonly InterfaceUsage[];
  /** The disk that holds volumes and logs. */
  disk: DiskUsage;
  /** The disk that holds images and the root file systems of containers. */
  runtimeDisk: DiskUsage;
  processes: ProcessLimits;
  pods: readonly SummaryPod[];
}

export interface SummaryPod {
  used: UsedPod;
  /** Undefined if the Pod uses the host network, or its network cannot be found. */
  interfaces: readonly InterfaceUsage[] | undefined;
  containers: readonly SummaryContainer[];
  volumes: readonly VolumeUsage[];
  /** The Pod's /etc/hosts and the termination messages of its containers. */
  files: DiskUse;
  processes: number;
}

export interface SummaryContainer extends UsedContainer {
  /** Undefined if the usage cannot be computed (see containerRate()). */
  cpuNanoCores: number | undefined;
  logs: { usedBytes: number; files: number };
  memoryLimitBytes: number | undefined;
}

/** Fields whose values are unknown are undefined, so that the JSON encoding omits them. */
export function summary(facts: SummaryFacts) {
  const { machine, now } = facts;
  const time = formatTime(now);
  return {
    node: {
      nodeName: facts.node,
      startTime: formatTime(machine.bootedAt),
      cpu: cpu(machine.at, facts.cpuNanoCores, machine.cpuNanoSeconds),
      memory: { time: formatTime(machine.at), ...machine.memory },
      network: network(time, facts.interfaces),
      fs: disk(time, facts.disk),
      runtime: { imageFs: disk(time, facts.runtimeDisk), containerFs: disk(time, facts.runtimeDisk) },
      rlimit: { time, maxpid: facts.processes.maxPid, curproc: facts.processes.running },
    },
    pods: facts.pods.map((pod) => podSummary(pod, time, facts)),
  };
}

function podSummary(
  { used, interfaces, containers, volumes, files, processes }: SummaryPod,
  time: string,
  facts: SummaryFacts,
) {
  const { pod } = used;
  const { name, namespace = '' } = pod.metadata;
  const total = (figure: (container: SummaryContainer) => number | undefined): number =>
    containers.reduce((sum, container) => sum + (figure(container) ?? 0), 0);
  const onDisk = volumes.filter(({ own }) => own === undefined);
  const at = Math.max(0, ...containers.map(({ usage }) => usage.at));
  const nanoCores = containers.map(({ cpuNanoCores }) => cpuNanoCores).filter((rate) => rate !== undefined);
  return {
    podRef: { name, namespace, uid: uidOf(pod) },
    startTime: pod.status?.startTime,
    containers: containers.map((container) => containerSummary(container, time, facts)),
    cpu: cpu(
      at,
      nanoCores.length === 0 ? undefined : nanoCores.reduce((sum, rate) => sum + rate, 0),
      total(({ usage }) => usage.cpuNanoSeconds),
    ),
    memory: {
      time: formatTime(at),
      usageBytes: total(({ usage }) => usage.usageBytes),
      workingSetBytes: total(({ usage }) => usage.workingSetBytes),
      rssBytes: total(({ usage }) => usage.rssBytes),
      pageFaults: total(({ usage }) => usage.pageFaults),
      majorPageFaults: total(({ usage }) => usage.majorPageFaults),
    },
    network: interfaces && network(time, interfaces),
    volume: volumes.map(({ name, own, usedBytes, inodesUsed, claim }) => ({
      ...disk(time, own ?? facts.disk),
      usedBytes,
      inodesUsed,
      name,
      pvcRef: claim === undefined ? undefined : { name: claim, namespace },
    })),
    process_stats: { process_count: processes },
    'ephemeral-storage': {
      ...disk(time, facts.disk),
      usedBytes:
        total(({ usage, logs }) => (usage.rootFs?.usedBytes ?? 0) + logs.usedBytes) +
        onDisk.reduce((sum, { usedBytes }) => sum + usedBytes, files.bytes),
      inodesUsed:
        total(({ usage, logs }) => (usage.rootFs?.inodesUsed ?? 0) + logs.files) +
        onDisk.reduce((sum, { inodesUsed }) => sum + inodesUsed, files.inodes),
    },
  };
}

function containerSummary(container: SummaryContainer, time: string, facts: SummaryFacts) {
  const { name, startedAt, usage, logs, cpuNanoCores, memoryLimitBytes } = container;
  const { workingSetBytes, usageBytes, rssBytes, pageFaults, majorPageFaults } = usage;
  return {
    name,
    startTime: startedAt === undefined ? undefined : formatTime(startedAt),
    cpu: cpu(usage.at, cpuNanoCores, usage.cpuNanoSeconds),
    memory: {
      time: formatTime(usage.at),
      availableBytes: memoryLimitBytes === undefined ? undefined : Math.max(0, memoryLimitBytes - workingSetBytes),
      usageBytes,
      workingSetBytes,
      rssBytes,
      pageFaults,
      majorPageFaults,
    },
    rootfs: usage.rootFs && { ...disk(time, facts.runtimeDisk), ...usage.rootFs },
    logs: { ...disk(time, facts.disk), usedBytes: logs.usedBytes, inodesUsed: logs.files },
  };
}

const cpu = (at: Millis, nanoCores: number | undefined, nanoSeconds: number) => ({
  time: formatTime(at),
  usageNanoCores: nanoCores === undefined ? undefined : Math.round(nanoCores),
  usageCoreNanoSeconds: nanoSeconds,
});

/** The fields of the first interface also appear at the top level, for the default interface of the Pod or node. */
const network = (time: string, interfaces: readonly InterfaceUsage[]) => ({
  time,
  ...interfaces[0],
  interfaces,
});

const disk = (time: string, { capacityBytes, usedBytes, availableBytes, inodes, inodesFree }: DiskUsage) => ({
  time,
  availableBytes,
  capacityBytes,
  usedBytes,
  inodesFree,
  inodes,
  inodesUsed: inodes - inodesFree,
});
