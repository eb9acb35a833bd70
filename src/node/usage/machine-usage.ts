/** CPU and memory are read from /proc, which does not depend on the version of cgroups. Source: proc(5). */
import { readdir, readFile, stat, statfs } from 'node:fs/promises';
import type { Millis } from '../../machinery/time.ts';

/** The unit of the times in /proc/stat is 1/100 s on all current machines. */
const TICKS_PER_SECOND = 100;

export interface MachineUsage {
  at: Millis;
  /** The CPU time of all cores since the machine started, without idle time and iowait. */
  cpuNanoSeconds: number;
  bootedAt: Millis;
  memory: { usageBytes: number; workingSetBytes: number; availableBytes: number; rssBytes: number };
}

export async function readMachineUsage(now: () => Millis): Promise<MachineUsage> {
  const [stat, meminfo] = await Promise.all([readFile('/proc/stat', 'utf8'), readFile('/proc/meminfo', 'utf8')]);
  return { at: now(), ...parseStat(stat), memory: parseMemory(meminfo) };
}

/** Parses /proc/stat. The fields guest and guest_nice are not added to the CPU time, since user and nice already include them. */
export function parseStat(text: string): { cpuNanoSeconds: number; bootedAt: Millis } {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = (/^cpu +(.+)$/m.exec(text)?.[1] ?? '')
    .split(' ')
    .map(Number);
  return {
    cpuNanoSeconds: ((user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND) * 1e9,
    bootedAt: Number(/^btime (\d+)$/m.exec(text)?.[1] ?? 0) * 1000,
  };
}

/**
 * Parses /proc/meminfo. Memory is counted as upstream counts it for a cgroup: the working set is the used memory without inactive file
 * pages.
 */
export function parseMemory(text: string): MachineUsage['memory'] {
  const bytes = (key: string): number => {
    const line = text.split('\n').find((each) => each.startsWith(`${key}:`));
    return Number(/(\d+) kB/.exec(line ?? '')?.[1] ?? 0) * 1024;
  };
  const usageBytes = bytes('MemTotal') - bytes('MemFree');
  const workingSetBytes = Math.max(0, usageBytes - bytes('Inactive(file)'));
  return {
    usageBytes,
    workingSetBytes,
    availableBytes: Math.max(0, bytes('MemTotal') - workingSetBytes),
    rssBytes: bytes('AnonPages'),
  };
}

export interface InterfaceUsage {
  name: string;
  rxBytes: number;
  rxErrors: number;
  txBytes: number;
  txErrors: number;
}

/**
 * Resolves to the network interfaces in the network namespace of the process, without the loopback interface; undefined if they cannot be
 * read, for example because the process has ended.
 */
export async function readInterfaces(pid: number | 'self'): Promise<InterfaceUsage[] | undefined> {
  const text = await readFile(`/proc/${pid}/net/dev`, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : parseInterfaces(text);
}

/** Parses /proc/PID/net/dev. Omits the loopback interface. */
export function parseInterfaces(text: string): InterfaceUsage[] {
  return text
    .trimEnd()
    .split('\n')
    .slice(2)
    .map((line) => {
      const [name = '', figures = ''] = line.split(':');
      const numbers = figures.trim().split(/ +/).map(Number);
      const [rxBytes = 0, , rxErrors = 0, , , , , , txBytes = 0, , txErrors = 0] = numbers;
      return { name: name.trim(), rxBytes, rxErrors, txBytes, txErrors };
    })
    .filter(({ name }) => name !== 'lo');
}

/** Resolves to the machine's interfaces with an IPv4 default route; if there are none, all interfaces except the loopback interface. */
export async function readMachineInterfaces(): Promise<InterfaceUsage[]> {
  const [all = [], routes] = await Promise.all([readInterfaces('self'), readFile('/proc/net/route', 'utf8')]);
  const outward = defaultInterfaces(routes);
  const chosen = all.filter(({ name }) => outward.includes(name));
  return chosen.length === 0 ? all : chosen;
}

/** The destination of a default route is 00000000. */
export const defaultInterfaces = (routes: string): string[] =>
  routes.split('\n').flatMap((line) => {
    const [name = '', destination] = line.split(/\s+/);
    return destination === '00000000' ? [name] : [];
  });

export interface DiskUsage {
  capacityBytes: number;
  usedBytes: number;
  /** Available to users other than root. */
  availableBytes: number;
  inodes: number;
  inodesFree: number;
}

export async function readDiskUsage(folder: string): Promise<DiskUsage> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(folder);
  return {
    capacityBytes: blocks * bsize,
    usedBytes: (blocks - bfree) * bsize,
    availableBytes: bavail * bsize,
    inodes: files,
    inodesFree: ffree,
  };
}

export interface ProcessLimits {
  maxPid: number;
  running: number;
}

/** Reads the number of processes and threads on the machine, and the maximum number. */
export async function readProcessLimits(): Promise<ProcessLimits> {
  const [load, pidMax, threadsMax] = await Promise.all(
    ['/proc/loadavg', '/proc/sys/kernel/pid_max', '/proc/sys/kernel/threads-max'].map((path) => readFile(path, 'utf8')),
  );
  return {
    maxPid: Math.min(Number(pidMax), Number(threadsMax)),
    running: Number(/\/(\d+) /.exec(load ?? '')?.[1] ?? 0),
  };
}

/**
 * `usedBytes`: the disk usage of the files directly in the folder. `files`: the number of entries of the folder. Resolves to zeros if the
 * folder cannot be read.
 */
export async function readFolderSize(folder: string): Promise<{ usedBytes: number; files: number }> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(`${folder}/${name}`).then(
        (file) => (file.isFile() ? file.blocks * 512 : 0),
        () => 0,
      ),
    ),
  );
  return { usedBytes: sizes.reduce((sum, size) => sum + size, 0), files: names.length };
}
