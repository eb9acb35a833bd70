/**
 * Finds the processes of a private containerd, and waits until they have ended. containerd and its shims are found by their arguments,
 * which contain paths that only one data folder uses, so the processes cannot belong to another lifepod instance.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerdPaths } from './paths.ts';

interface Process {
  pid: number;
  args: string[];
}

const readOrEmpty = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
};

function processes(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), args: readOrEmpty(`/proc/${name}/cmdline`).split('\0') }));
}

const hasOption = (args: string[], names: string[], value: string): boolean =>
  args.some((arg, i) => names.includes(arg) && args[i + 1] === value);

export function findContainerd(paths: ContainerdPaths): number[] {
  return processes()
    .filter(({ args }) => basename(args[0] ?? '') === 'containerd' && hasOption(args, ['--config'], paths.config))
    .map(({ pid }) => pid);
}

export function findShims(paths: ContainerdPaths): number[] {
  return processes()
    .filter(
      ({ args }) =>
        basename(args[0] ?? '').startsWith('containerd-shim') &&
        hasOption(args, ['-address', '--address'], paths.socket),
    )
    .map(({ pid }) => pid);
}

/** Returns the IDs of the processes whose parent is one of `pids`. */
export function childrenOf(pids: number[]): number[] {
  const parents = new Set(pids);
  return processes()
    .map(({ pid }) => pid)
    .filter((pid) => parents.has(Number(statFields(pid)?.[1])));
}

/** Returns the fields of /proc/<pid>/stat after the command's name: state, parent, …; undefined if the process does not exist. */
function statFields(pid: number): string[] | undefined {
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  return stat === '' ? undefined : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

const isAlive = (pid: number): boolean => {
  const state = statFields(pid)?.[0];
  return state !== undefined && state !== 'Z' && state !== 'X';
};

const POLL_MILLIS = 10;

/**
 * Resolves with true as soon as all processes have ended, or with false after `withinMillis`. Polls, because the processes are not
 * children of the engine, the kernel reports an exit only to the parent, and Node.js does not support pidfd_open(2).
 */
export function haveEnded(pids: number[], withinMillis: number, timers: Timers): Promise<boolean> {
  const deadline = timers.now() + withinMillis;
  return new Promise((resolve) => {
    const look = (): void => {
      if (!pids.some(isAlive)) resolve(true);
      else if (timers.now() >= deadline) resolve(false);
      else timers.at(timers.now() + POLL_MILLIS, look);
    };
    look();
  });
}
