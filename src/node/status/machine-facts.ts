import { readFile, statfs } from 'node:fs/promises';
import { availableParallelism, release } from 'node:os';
import type { NodeSystemInfo } from '../../api/generated/types.ts';
import { architecture } from '../../platform/architecture.ts';
import { NOTHING, podAmounts, type Reserved } from '../admission/allocatable.ts';
import type { Threshold } from '../eviction/thresholds.ts';
import { hugepagesName, readHugepages } from '../resources/hugepages.ts';
import { readProcessLimits } from '../usage/machine-usage.ts';

/** The default of the kubelet's maxPods. */
export const DEFAULT_MAX_PODS = 110;

export interface CapacityOptions {
  /** A folder on the disk with logs and emptyDir volumes. The size of this disk is the capacity of ephemeral-storage. */
  folder: string;
  reserved?: Reserved;
  /** The hard eviction thresholds reduce the allocatable resources. */
  thresholds?: readonly Threshold[];
  /** Absent: DEFAULT_MAX_PODS. */
  maxPods?: number;
}

export interface Capacity {
  memoryBytes: number;
  /** Quantities by resource, for the Node's status. */
  capacity: Record<string, string>;
  /** The quantities that Pods can request. */
  allocatable: Record<string, string>;
  /** The maximum that all Pods together may use. */
  podLimits: { cpuMilli: number; memoryBytes: number; pids: number };
}

/** Rejects if more is reserved than the machine has. */
export async function readCapacity(options: CapacityOptions): Promise<Capacity> {
  const { folder, reserved = NOTHING, thresholds = [], maxPods = DEFAULT_MAX_PODS } = options;
  const [memoryBytes, disk, huge, { maxPid: pids }] = await Promise.all([
    readMemory(),
    statfs(folder),
    readHugepages(),
    readProcessLimits(),
  ]);
  const hugeBytes = [...huge.values()].reduce((sum, bytes) => sum + bytes, 0);
  const hugepages = Object.fromEntries([...huge].map(([size, bytes]) => [hugepagesName(size), String(bytes)]));
  const cpus = availableParallelism();
  const whole = { cpuMilli: cpus * 1000, memoryBytes, diskBytes: disk.blocks * disk.bsize, pids };
  const { limits, allocatable } = podAmounts(whole, reserved, thresholds);
  const pods = String(maxPods);
  const inKi = (bytes: number): string => `${Math.floor(bytes / 1024)}Ki`;
  return {
    memoryBytes,
    capacity: {
      cpu: String(cpus),
      'ephemeral-storage': inKi(whole.diskBytes),
      ...hugepages,
      memory: inKi(memoryBytes),
      pods,
    },
    allocatable: {
      cpu: allocatable.cpuMilli % 1000 === 0 ? String(allocatable.cpuMilli / 1000) : `${allocatable.cpuMilli}m`,
      'ephemeral-storage': String(allocatable.diskBytes),
      ...hugepages,
      memory: inKi(Math.max(0, allocatable.memoryBytes - hugeBytes)),
      pods,
    },
    podLimits: { cpuMilli: limits.cpuMilli, memoryBytes: limits.memoryBytes, pids: limits.pids },
  };
}

async function readMemory(): Promise<number> {
  const text = await readFile('/proc/meminfo', 'utf8');
  return Number(/^MemTotal:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
}

/**
 * `runtime`: the name and version of the runtime, such as containerd://1.6.20. `version`: reported as the kubelet's version. Values that
 * cannot be read are empty, except systemUUID, which is then the machine ID, and osImage, which is then Linux.
 */
export async function readSystemInfo(runtime: string, version: string): Promise<NodeSystemInfo> {
  const read = (path: string): Promise<string> =>
    readFile(path, 'utf8').then(
      (text) => text.trim(),
      () => '',
    );
  const [machineID, systemUUID, bootID, osRelease] = await Promise.all([
    read('/etc/machine-id'),
    read('/sys/class/dmi/id/product_uuid'),
    read('/proc/sys/kernel/random/boot_id'),
    read('/etc/os-release'),
  ]);
  return {
    architecture: architecture(),
    bootID,
    containerRuntimeVersion: runtime,
    kernelVersion: release(),
    kubeProxyVersion: '',
    kubeletVersion: version,
    machineID,
    operatingSystem: 'linux',
    osImage: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(osRelease)?.[1] ?? 'Linux',
    systemUUID: systemUUID === '' ? machineID : systemUUID,
  };
}
