/**
 * The state that a containerd leaves in its run folder, and how it is cleared: after a reboot, when none of it is valid any more,
 * and when lifepod is taken down.
 */
import { readFileSync, rmSync } from 'node:fs';
import { ensurePrivateFolder, readTextIfPresent, writeFileAtomic } from '../../platform/files.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { runCommandOk, sendSignal } from '../../platform/processes.ts';
import { connect } from '../cri/connection.ts';
import { cgroupFolders, removeEmptyCgroups } from './cgroups.ts';
import { type ContainerdPaths, containerdPaths } from './paths.ts';
import { childrenOf, findContainerd, findShims, haveEnded } from './process-table.ts';
import { removeShimSockets } from './shims.ts';

const STOP_MILLIS = 10_000;
const KILL_MILLIS = 5_000;

/** Creates the run folder, and empties one from before the last boot. */
export async function prepareRunFolder(paths: ContainerdPaths): Promise<void> {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const filled = readTextIfPresent(paths.bootId)?.trim();
  if (filled !== undefined && filled !== boot) {
    await unmountUnder([paths.run]);
    rmSync(paths.run, { recursive: true, force: true });
  }
  ensurePrivateFolder(paths.run);
  if (filled !== boot) writeFileAtomic(paths.bootId, `${boot}\n`);
}

/** Ends a containerd of this data folder that outlived its engine. Containers and their shims keep running. */
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
 * Removes everything that a data folder's containerd leaves except its images: processes, mounts, the run folder. Meant for when all
 * Pods are gone: containers that still run are killed, and the addresses that CNI gave them are not released.
 */
export async function clearRunState(options: { dataDir: string; log: Log; timers: Timers }): Promise<void> {
  const { log, timers } = options;
  const paths = containerdPaths(options.dataDir);
  await endLeftover(paths, log, timers);
  const shims = findShims(paths);
  if (shims.length > 0) {
    const containers = childrenOf(shims);
    const cgroups = new Set(containers.flatMap(cgroupFolders));
    if (containers.length > 0) log.warn('killing containers that were left behind', { pids: containers });
    await end([...containers, ...shims], 'SIGKILL', timers);
    removeEmptyCgroups(cgroups);
  }
  removeShimSockets(paths.state);
  await unmountUnder([paths.run, paths.home]);
  rmSync(paths.run, { recursive: true, force: true });
}

const END_SANDBOXES_MILLIS = 30_000;

/** Uses CRI, so that networks, cgroups and sockets are removed too. Sandboxes that cannot be ended this way are left to clearRunState. */
export async function endSandboxes(endpoint: string, log: Log): Promise<void> {
  const connection = connect(endpoint);
  const signal = AbortSignal.timeout(END_SANDBOXES_MILLIS);
  const call = <T>(method: string, request: object): Promise<T> =>
    connection.unary<T>(`runtime.v1.RuntimeService/${method}`, request, signal);
  try {
    const { items } = await call<{ items: { id: string }[] }>('ListPodSandbox', {});
    for (const { id } of items) {
      await call('StopPodSandbox', { podSandboxId: id });
      await call('RemovePodSandbox', { podSandboxId: id });
    }
  } catch (error) {
    log.warn('not every sandbox could be ended', { error: String(error) });
  } finally {
    connection.close();
  }
}

/** Unmounts lazily: a mount that is still in use must not prevent the others from being unmounted. */
async function unmountUnder(folders: string[]): Promise<void> {
  const mounts = mountPoints(readFileSync('/proc/self/mountinfo', 'utf8')).filter((point) =>
    folders.some((folder) => point === folder || point.startsWith(`${folder}/`)),
  );
  if (mounts.length > 0) await runCommandOk('umount', ['--lazy', ...mounts.reverse()]);
}

/** Mount points in the order of mounting; the kernel writes space, tab, newline and backslash as \ooo. */
export function mountPoints(mountinfo: string): string[] {
  return mountinfo
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((point) => point !== undefined)
    .map((point) =>
      point.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
}
