/**
 * Finds and removes processes, mounts, networks and control groups that the engine of a data folder left on the machine. `lifepod down`
 * removes them at its end, so that nothing remains even after an engine was killed. `lifepod status` only finds processes.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endDnsProcesses, findDnsProcesses } from '../network/dns/process.ts';
import { hasLink } from '../network/pod-network/links.ts';
import { networkNames } from '../network/pod-network/names.ts';
import { tearDownNetwork } from '../network/pod-network/tear-down.ts';
import { removePodCgroups } from '../node/resources/pod-cgroups.ts';
import type { Platform } from '../platform/platform.ts';
import { runCommandOk } from '../platform/processes.ts';
import { mayBeOwn } from '../platform/programs/pid-namespace.ts';
import { containerdPaths } from '../runtime/containerd/paths.ts';
import { findContainerd, findShims } from '../runtime/containerd/process-table.ts';
import { clearRunState, mountPoints } from '../runtime/containerd/run-state.ts';
import { removeUserKubeconfigs } from './certificates/user-kubeconfigs.ts';

export interface FoundProcess {
  pid: number;
  commandLine: string[];
}

/** Returns the processes that have the path, or a path below it, in an argument of their command line. Omits this process. */
export function processesNaming(path: string): FoundProcess[] {
  const found: FoundProcess[] = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    const commandLine = readCommandLine(entry);
    if (commandLine.some((argument) => names(argument, path))) found.push({ pid: Number(entry), commandLine });
  }
  return found;
}

/**
 * Returns whether an argument contains the path or a path below it. The arguments /d, /d/x and --root=/d/x contain the path /d, but /d2
 * does not contain it.
 */
function names(argument: string, path: string): boolean {
  const at = argument.indexOf(path);
  if (at === -1) return false;
  const next = argument[at + path.length];
  return (at === 0 || '=,:/'.includes(argument[at - 1] ?? '')) && (next === undefined || next === '/');
}

function readCommandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** Returns the processes of the data folder's private containerd, including its shims, but none in containers of this machine or of users. */
export function runtimeProcesses(dataDir: string): FoundProcess[] {
  const { run, home } = containerdPaths(dataDir);
  return [...processesNaming(run), ...processesNaming(home)].filter(
    ({ pid, commandLine }) => /^containerd/.test((commandLine[0] ?? '').replace(/^.*\//, '')) && mayBeOwn(pid),
  );
}

/**
 * Returns whether a private containerd, a shim or a DNS process of the data folder runs. They are found by paths that only this data folder
 * uses.
 */
export function hasProcesses(dataDir: string): boolean {
  return hasRuntime(dataDir) || dnsProcesses(dataDir).length > 0;
}

/** Returns whether the data folder's private containerd or one of its shims runs. Without a private containerd, returns false. */
export function hasRuntime(dataDir: string): boolean {
  const paths = containerdPaths(dataDir);
  return findContainerd(paths).length + findShims(paths).length > 0;
}

/** Returns whether the data folder contains the folder of a Pod. Pods may run only if it does. */
export function hasPodFolders(dataDir: string): boolean {
  const folder = join(dataDir, 'pods');
  return existsSync(folder) && readdirSync(folder).length > 0;
}

/** Returns the path of the socket between the engine of the data folder and its DNS process. */
export const dnsSocket = (dataDir: string): string => join(containerdPaths(dataDir).run, 'dns.sock');

/** Returns the IDs of the DNS processes of the data folder. */
export const dnsProcesses = (dataDir: string): number[] => findDnsProcesses(dnsSocket(dataDir));

/** Returns the mount points in the data folder and in the run folder of its containerd, in reverse order of mounting. */
export function mountsOf(dataDir: string): string[] {
  const { run } = containerdPaths(dataDir);
  return mountPoints(readFileSync('/proc/self/mountinfo', 'utf8'))
    .filter((point) => point.startsWith(`${dataDir}/`) || point.startsWith(`${run}/`))
    .reverse();
}

/** Returns the resident memory of a process in bytes; 0 if the process has exited. */
export function residentBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Returns whether the machine has the network of the data folder's Pods. */
export const hasNetwork = (dataDir: string): boolean => hasLink(networkNames({ dataDir, instance: dataDir }).bridge);

/** Stops the data folder's DNS process, and removes the network of its Pods. May be repeated. Do not call it while Pods may run. */
export async function clearNetwork(dataDir: string, platform: Platform, signal: AbortSignal): Promise<void> {
  await endDnsProcesses(dnsSocket(dataDir), platform.timers);
  await tearDownNetwork({ dataDir, instance: dataDir, runtimeFolder: containerdPaths(dataDir).run, signal });
}

/**
 * Stops the data folder's DNS process and private containerd, kills containers that still run in it, and removes the mounts, network and
 * control groups of the data folder, and the copies of its kubeconfig for users. May be repeated.
 */
export async function clearMachine(dataDir: string, platform: Platform, signal: AbortSignal): Promise<void> {
  await endDnsProcesses(dnsSocket(dataDir), platform.timers);
  await clearRunState({ dataDir, ...platform });
  const { run: runtimeFolder } = containerdPaths(dataDir);
  await Promise.all([
    tearDownNetwork({ dataDir, instance: dataDir, runtimeFolder, signal }),
    removePodCgroups(dataDir),
  ]);
  removeUserKubeconfigs(dataDir);
  const mounts = mountsOf(dataDir);
  if (mounts.length > 0) await runCommandOk('umount', ['--lazy', ...mounts], { signal });
}
