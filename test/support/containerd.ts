/** The private containerd of an engine, reached behind the engine's back. */
import { basename } from 'node:path';
import { runtimeProcesses } from '../../src/engine/leftovers.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import type { RunningLifepod } from './lifepod.ts';

/** The process of containerd, without its shims. Throws where there is not exactly one. */
export function containerdPid({ dataDir }: RunningLifepod): number {
  const found = runtimeProcesses(dataDir).filter(({ commandLine }) => basename(commandLine[0] ?? '') === 'containerd');
  const [process] = found;
  if (process === undefined || found.length > 1) {
    throw new Error(`${found.length} processes are the containerd of ${dataDir}`);
  }
  return process.pid;
}

/** kill -9. The engine starts another one; the shims and the containers live on. */
export const killContainerd = (lifepod: RunningLifepod): void => void process.kill(containerdPid(lifepod), 'SIGKILL');

/** ctr on the namespace of Kubernetes; returns its output. */
export const ctr = ({ dataDir }: RunningLifepod, ...args: string[]): Promise<string> =>
  runCommandOk('ctr', ['-a', containerdPaths(dataDir).socket, '-n', 'k8s.io', ...args]);
