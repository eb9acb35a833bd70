import { basename } from 'node:path';
import { runtimeProcesses } from '../../src/engine/leftovers.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import type { RunningLifepod } from './lifepod.ts';

/** Throws unless exactly one containerd of the engine is running. */
export function containerdPid({ dataDir }: RunningLifepod): number {
  const found = runtimeProcesses(dataDir).filter(({ commandLine }) => basename(commandLine[0] ?? '') === 'containerd');
  const [process] = found;
  if (process === undefined || found.length > 1) {
    throw new Error(`found ${found.length} containerd processes of ${dataDir} instead of one`);
  }
  return process.pid;
}

/** The engine starts a new containerd; shims and containers keep running. */
export const killContainerd = (lifepod: RunningLifepod): void => void process.kill(containerdPid(lifepod), 'SIGKILL');

export const ctr = ({ dataDir }: RunningLifepod, ...args: string[]): Promise<string> =>
  runCommandOk('ctr', ['-a', containerdPaths(dataDir).socket, '-n', 'k8s.io', ...args]);
