/** What the machine is and has, read from /proc, /sys and /etc. */
import { readFile, statfs } from 'node:fs/promises';
import { availableParallelism, release } from 'node:os';
import type { NodeSystemInfo } from '../api/generated/types.ts';

/** As upstream's default for a node. */
export const MAX_PODS = 110;
/** Left to the system, as upstream's default eviction thresholds leave it: 100 MiB of memory, a tenth of the disk. */
const RESERVED_MEMORY_BYTES = 100 * 1024 * 1024;
const ALLOCATABLE_DISK_PART = 0.9;

export interface Capacity {
  memoryBytes: number;
  /** Quantities by resource, for the Node's status. */
  capacity: Record<string, string>;
  allocatable: Record<string, string>;
}

/** `folder`: on the disk that holds images, logs and emptyDir volumes. */
export async function readCapacity(folder: string): Promise<Capacity> {
  const [{ totalBytes }, disk] = await Promise.all([readMemory(), statfs(folder)]);
  const cpu = String(availableParallelism());
  const diskBytes = disk.blocks * disk.bsize;
  const pods = String(MAX_PODS);
  const inKi = (bytes: number): string => `${Math.floor(bytes / 1024)}Ki`;
  return {
    memoryBytes: totalBytes,
    capacity: { cpu, 'ephemeral-storage': inKi(diskBytes), memory: inKi(totalBytes), pods },
    allocatable: {
      cpu,
      'ephemeral-storage': String(Math.floor(diskBytes * ALLOCATABLE_DISK_PART)),
      memory: inKi(totalBytes - RESERVED_MEMORY_BYTES),
      pods,
    },
  };
}

async function readMemory(): Promise<{ totalBytes: number; availableBytes: number }> {
  const text = await readFile('/proc/meminfo', 'utf8');
  const bytes = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024;
  return { totalBytes: bytes('MemTotal'), availableBytes: bytes('MemAvailable') };
}

export interface Pressure {
  memory: boolean;
  disk: boolean;
  pids: boolean;
}

const MIN_FREE_DISK_PART = 0.1;
const MIN_FREE_INODES_PART = 0.05;

/** Against upstream's default eviction thresholds (memory 100 MiB, disk 10%, inodes 5%), and the kernel's limit of threads. */
export async function readPressure(folder: string): Promise<Pressure> {
  const [memory, disk, load, pidMax] = await Promise.all([
    readMemory(),
    statfs(folder),
    readFile('/proc/loadavg', 'utf8'),
    readFile('/proc/sys/kernel/pid_max', 'utf8'),
  ]);
  const threads = Number(/\/(\d+) /.exec(load)?.[1] ?? 0);
  return {
    memory: memory.availableBytes < RESERVED_MEMORY_BYTES,
    disk:
      disk.bavail < disk.blocks * MIN_FREE_DISK_PART ||
      (disk.files > 0 && disk.ffree < disk.files * MIN_FREE_INODES_PART),
    pids: threads >= Number(pidMax),
  };
}

/** Go's name of the machine's architecture, as the API uses it. */
export const architecture = (): string => ({ x64: 'amd64', ia32: '386' })[process.arch as string] ?? process.arch;

/** `runtime`: such as containerd://1.6.20. `version`: of the kubelet. */
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
