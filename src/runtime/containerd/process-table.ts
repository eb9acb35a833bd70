/**
 * Finds the processes of a private containerd: containerd and its shims. Their arguments contain paths that only one data folder uses. The
 * PID namespace is compared, because a lifepod in a container may use the same paths. The user is compared, because any user can choose the
 * arguments of a process.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { listProcesses } from '../../platform/processes.ts';
import { mayBeOwn } from '../../platform/programs/pid-namespace.ts';
import type { ContainerdPaths } from './paths.ts';

const hasOption = (args: string[], names: string[], value: string): boolean =>
  args.some((arg, i) => names.includes(arg) && args[i + 1] === value);

export function findContainerd(paths: ContainerdPaths): number[] {
  return listProcesses()
    .filter(({ args }) => basename(args[0] ?? '') === 'containerd' && hasOption(args, ['--config'], paths.config))
    .map(({ pid }) => pid)
    .filter(mayBeOwn);
}

export function findShims(paths: ContainerdPaths): number[] {
  return listProcesses()
    .filter(
      ({ args }) =>
        basename(args[0] ?? '').startsWith('containerd-shim') &&
        hasOption(args, ['-address', '--address'], paths.socket),
    )
    .map(({ pid }) => pid)
    .filter(mayBeOwn);
}

/**
 * Returns the paths of the Unix sockets on which the processes listen. Skips processes that have ended.
 * Source: proc_pid_fd(5); net/unix/af_unix.c of Linux (format of /proc/PID/net/unix, and the flag __SO_ACCEPTCON of listening sockets).
 */
export const listeningSockets = (pids: number[]): string[] =>
  pids.flatMap((pid) => {
    try {
      const inodes = new Set(readdirSync(`/proc/${pid}/fd`).flatMap((fd) => socketInode(`/proc/${pid}/fd/${fd}`)));
      // The columns are: number, references, protocol, flags, type, state, inode, path. A path may contain spaces.
      const sockets = readFileSync(`/proc/${pid}/net/unix`, 'utf8').matchAll(
        /^\S+: \S+ \S+ 00010000 \S+ \S+ +(\d+) (\/.*)$/gm,
      );
      return [...sockets].flatMap(([, inode = '', path = '']) => (inodes.has(inode) ? [path] : []));
    } catch {
      return [];
    }
  });

/** Returns an empty list if the file descriptor is closed or is not a socket. */
function socketInode(link: string): string[] {
  try {
    return readlinkSync(link).match(/(?<=^socket:\[)\d+/) ?? [];
  } catch {
    return [];
  }
}
