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
import { countPodsWithProcesses, removePodCgroups } from '../node/resources/pod-cgroups.ts';
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

/** The arguments /d, /d/x and --root=/d/x contain the path /d, but /d2 does not. */
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

/** Returns the processes of the private containerd and its shims. Omits processes in containers and processes of other users. */
export function runtimeProcesses(dataDir: string): FoundProcess[] {
  const { run, home } = containerdPaths(dataDir);
  return [...processesNaming(run), ...processesNaming(home)].filter(
    ({ pid, commandLine }) => /^containerd/.test((commandLine[0] ?? '').replace(/^.*\//, '')) && mayBeOwn(pid),
  );
}

/** Returns whether the private containerd, a shim or the DNS process runs. Finds them by paths that only this data folder uses. */
export function hasProcesses(dataDir: string): boolean {
  return hasRuntime(dataDir) || dnsProcesses(dataDir).length > 0;
}

export function hasRuntime(dataDir: string): boolean {
  const paths = containerdPaths(dataDir);
  return findContainerd(paths).length + findShims(paths).length > 0;
}

/** Pods may run only if the data folder contains the folder of a Pod. */
export function hasPodFolders(dataDir: string): boolean {
  const folder = join(dataDir, 'pods');
  return existsSync(folder) && readdirSync(folder).length > 0;
}

/**
 * Resolves with the number of Pods that run in the machine's own runtime, which does not answer. `unknown`: their processes cannot be
 * distinguished from others, and the DNS process shows that the machine has not been restarted since they may have started.
 */
export async function podsInSilentRuntime(dataDir: string): Promise<number | 'unknown'> {
  if (!hasPodFolders(dataDir)) return 0;
  return (await countPodsWithProcesses(dataDir)) ?? (dnsProcesses(dataDir).length > 0 ? 'unknown' : 0);
}

export const dnsSocket = (dataDir: string): string => join(containerdPaths(dataDir).run, 'dns.sock');

export const dnsProcesses = (dataDir: string): number[] => findDnsProcesses(dnsSocket(dataDir));

/** Returns the mount points in the data folder and in the run folder of containerd, in reverse order of mounting. */
export function mountsOf(dataDir: string): string[] {
  const { run } = containerdPaths(dataDir);
  return mountPoints(readFileSync('/proc/self/mountinfo', 'utf8'))
    .filter((point) => point.startsWith(`${dataDir}/`) || point.startsWith(`${run}/`))
    .reverse();
}

/** Returns 0 if the process has exited. */
export function residentBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

export const hasNetwork = (dataDir: string): boolean => hasLink(networkNames({ dataDir, instance: dataDir }).bridge);

/** May be repeated. Do not call this while Pods may run. */
export async function clearNetwork(dataDir: string, platform: Platform, signal: AbortSignal): Promise<void> {
  await endDnsProcesses(dnsSocket(dataDir), platform.timers);
  await tearDownNetwork({ dataDir, instance: dataDir, runtimeFolder: containerdPaths(dataDir).run, signal });
}

/** May be repeated. Kills containers that still run in the private containerd. */
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
