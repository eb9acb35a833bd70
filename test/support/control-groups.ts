/** Reads the control groups of an engine's Pods from the kernel's files, on cgroup v1 and v2. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../src/api/generated/types.ts';
import { cgroupRootOf } from '../../src/node/resources/pod-cgroups.ts';
import { CGROUP_ROOT, cpuWeight } from '../../src/platform/control-groups/cgroups.ts';
import { statusOf } from './pods.ts';

const version = existsSync(join(CGROUP_ROOT, 'cgroup.controllers')) ? 2 : 1;

/** A limit that is not set is 'none'. */
export interface GroupLimits {
  /** CPU shares (version 1) or weight (version 2). */
  shares: string;
  quotaMicros: string;
  memoryBytes: string;
  pids: string;
}

/** Returns the value that the kernel shows for `count` CPU shares: the shares in version 1, their weight in version 2. */
export const shares = (count: number): string => String(version === 1 ? count : cpuWeight(count));

/**
 * Returns the weights that the group of a container may have in version 2. runc calculates the weight, since version 1.3.2 with another
 * formula.
 */
export const containerWeights = (count: number): string[] => {
  const bits = Math.log2(count);
  return [cpuWeight(count), Math.ceil(10 ** ((bits ** 2 + 125 * bits) / 612 - 7 / 34))].map(String);
};
export const containerShares = (count: number): string[] => (version === 1 ? [shares(count)] : containerWeights(count));

const file = (controller: string, group: string, name: string): string => {
  const path = join(CGROUP_ROOT, version === 1 ? controller : '', group, name);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : 'none';
};
/** Version 1 shows a missing memory limit as a number near the size of the address space. */
const limited = (text: string): string => (text === 'max' || text === '-1' || Number(text) > 2 ** 62 ? 'none' : text);

export const limitsOf = (group: string): GroupLimits =>
  version === 1
    ? {
        shares: file('cpu', group, 'cpu.shares'),
        quotaMicros: limited(file('cpu', group, 'cpu.cfs_quota_us')),
        memoryBytes: limited(file('memory', group, 'memory.limit_in_bytes')),
        pids: limited(file('pids', group, 'pids.max')),
      }
    : {
        shares: file('', group, 'cpu.weight'),
        quotaMicros: limited(file('', group, 'cpu.max').split(' ')[0] ?? ''),
        memoryBytes: limited(file('', group, 'memory.max')),
        pids: limited(file('', group, 'pids.max')),
      };

/** Returns the swap limit of a group with a memory limit, in bytes, or 'none' if the kernel does not account swap. */
export function swapBytesOf(group: string): string {
  if (version === 2) return file('', group, 'memory.swap.max');
  const together = file('memory', group, 'memory.memsw.limit_in_bytes');
  return together === 'none' ? together : String(Number(together) - Number(limitsOf(group).memoryBytes));
}

/** `parts` are the names of the groups below kubepods. */
export const groupIn = (dataDir: string, ...parts: string[]): string =>
  join(cgroupRootOf(dataDir), 'kubepods', ...parts);

export function podGroup(dataDir: string, pod: Pod): string {
  const qos = pod.status?.qosClass ?? '';
  return groupIn(dataDir, ...(qos === 'Guaranteed' ? [] : [qos.toLowerCase()]), `pod${pod.metadata.uid}`);
}

/** The name of the group is the container ID without a prefix such as containerd://. */
export const containerGroup = (dataDir: string, pod: Pod, container: string): string =>
  join(podGroup(dataDir, pod), statusOf(pod, container).containerID?.replace(/^.*:\/\//, '') ?? '');

/** The PIDs are those on the host. */
export const processesOf = (group: string): number[] => file('memory', group, 'cgroup.procs').split('\n').map(Number);

export const groupExists = (group: string): boolean =>
  ['cpu', 'memory', 'pids', 'freezer', 'systemd', ''].some((each) => existsSync(join(CGROUP_ROOT, each, group)));
