/** Clears the state that a private containerd leaves on the machine: before a start of containerd, and for `lifepod down`. */
import { readFileSync, rmSync } from 'node:fs';
import { ensurePrivateFolder, readTextIfPresent, writeFileAtomic } from '../../platform/files.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { childrenOf, haveEnded, processStartTicks, runCommandOk, sendSignal } from '../../platform/processes.ts';
import { cgroupFolders, removeEmptyCgroups } from './cgroups.ts';
import { type ContainerdPaths, containerdPaths } from './paths.ts';
import { findContainerd, findShims, listeningSockets } from './process-table.ts';
import { findBundledShims } from './shims.ts';

const STOP_MILLIS = 10_000;
const KILL_MILLIS = 5_000;

/**
 * Creates the run folder if necessary. First deletes a run folder from an earlier boot. In a container, each start of the container counts
 * as a boot: all processes and mounts have ended, although the machine has not booted.
 */
export async function prepareRunFolder(paths: ContainerdPaths): Promise<void> {
  const now = {
    bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    initStart: String(processStartTicks(1)),
  };
  const isLeftover = (['bootId', 'initStart'] as const).some((key) => {
    const then = readTextIfPresent(paths[key])?.trim();
    return then !== undefined && then !== now[key];
  });
  if (isLeftover) {
    await unmountUnder([paths.run]);
    rmSync(paths.run, { recursive: true, force: true });
  }
  ensurePrivateFolder(paths.run);
  for (const key of ['bootId', 'initStart'] as const)
    if (readTextIfPresent(paths[key]) === undefined) writeFileAtomic(paths[key], `${now[key]}\n`);
}

/**
 * Ends a containerd of this data folder that still runs. Rejects if containerd does not end even after SIGKILL. Containers keep running.
 */
export async function endLeftover(paths: ContainerdPaths, log: Log, timers: Timers): Promise<void> {
  const pids = findContainerd(paths);
  if (pids.length === 0) return;
  log.info('ending a containerd that outlived its engine', { pids });
  await end(pids, 'SIGTERM', timers);
}

async function end(pids: number[], signal: 'SIGTERM' | 'SIGKILL', timers: Timers): Promise<void> {
  for (const pid of pids) sendSignal(pid, signal);
  if (await haveEnded(pids, signal === 'SIGKILL' ? KILL_MILLIS : STOP_MILLIS, timers)) return;
  if (signal === 'SIGKILL') throw new Error(`the processes ${pids.join(', ')} do not end`);
  await end(pids, 'SIGKILL', timers);
}

/**
 * Ends containerd, its shims and its containers, and removes their mounts, cgroups and sockets and the run folder. Keeps the folder
 * <dataDir>/containerd, which contains the images. Call this when all Pods have been deleted: containers that still run are killed, and
 * their CNI addresses are not released.
 */
export async function clearRunState(options: { dataDir: string; log: Log; timers: Timers }): Promise<void> {
  const { log, timers } = options;
  const paths = containerdPaths(options.dataDir);
  await endLeftover(paths, log, timers);
  const shims = findShims(paths);
  // A shim that ends normally removes its socket itself. The processes are searched, too, because their bundle folders are missing if the
  // data folder was deleted, and the bundle folders, because a shim may have been killed before.
  const bundled = findBundledShims(paths.state).map(({ socket }) => socket);
  const sockets = new Set([...listeningSockets(shims), ...bundled]);
  if (shims.length > 0) {
    const containers = childrenOf(shims);
    const cgroups = new Set(containers.flatMap(cgroupFolders));
    if (containers.length > 0) log.warn('killing containers that were left behind', { pids: containers });
    await end([...containers, ...shims], 'SIGKILL', timers);
    removeEmptyCgroups(cgroups);
  }
  for (const socket of sockets) rmSync(socket, { force: true });
  await unmountUnder([paths.run, paths.home]);
  rmSync(paths.run, { recursive: true, force: true });
}

/** Unmounts lazily, so that a mount in use does not prevent the removal of other mounts. */
async function unmountUnder(folders: string[]): Promise<void> {
  const mounts = mountPoints(readFileSync('/proc/self/mountinfo', 'utf8')).filter((point) =>
    folders.some((folder) => point === folder || point.startsWith(`${folder}/`)),
  );
  if (mounts.length > 0) await runCommandOk('umount', ['--lazy', ...mounts.reverse()]);
}

/** Returns the mount points in the order of `mountinfo`, in which space, tab, newline and backslash are written as \ooo (octal). */
export function mountPoints(mountinfo: string): string[] {
  return mountinfo
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((point) => point !== undefined)
    .map((point) =>
      point.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
}
