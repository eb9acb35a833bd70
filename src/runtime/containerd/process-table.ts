/**
 * Finds the processes of a private containerd: containerd and its shims. Their arguments contain paths that only one data folder uses. The
 * PID namespace is compared, because a lifepod in a container may use the same paths. The user is compared, because any user can choose the
 * arguments of a process.
 */
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
