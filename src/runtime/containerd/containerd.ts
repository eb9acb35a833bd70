/**
 * Runs a private containerd as a child process of the engine: writes its configuration, starts it, and restarts it after an exit.
 *
 * containerd can be stopped and started at any time, because containers do not depend on it: their shims keep them running, and each new
 * containerd adopts them.
 *
 * Invariants:
 *  1. At most one containerd runs per data folder: startContainerd() first ends a containerd that a killed engine has left running.
 *  2. Until stop() or shutdown() is called, containerd is restarted after each exit, with increasing delays if it exits repeatedly.
 */

import { readFileSync } from 'node:fs';
import { ensurePrivateFolder, writeFileAtomic } from '../../platform/files.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { requireProgram } from '../../platform/processes.ts';
import { containerdConfig } from './config.ts';
import { endSandboxes } from './end-sandboxes.ts';
import { openLogFile } from './log-file.ts';
import { type ContainerdPaths, containerdPaths } from './paths.ts';
import { type ContainerdExit, launchContainerd } from './process.ts';
import { clearRunState, endLeftover, prepareRunFolder } from './run-state.ts';
import { createShimExits, type ShimExits } from './shim-exits.ts';
import { superviseContainerd } from './supervisor.ts';

export interface ContainerdOptions {
  dataDir: string;
  log: Log;
  timers: Timers;
  /** Must be present, or available from a registry. */
  sandboxImage: string;
  cniConfDir: string;
  cniBinDir: string;
  /** See ConfigOptions. */
  runtimeHandlers?: Readonly<Record<string, string>>;
}

export interface Containerd {
  /** The address of the CRI socket in the form unix:///PATH, for connectRuntime(). */
  readonly endpoint: string;
  readonly version: string;
  /**
   * The exits of containers that ended while containerd was down. The client that follows containerd's events must call unwatch() after
   * each start of containerd, as soon as the client can no longer miss events.
   */
  readonly shimExits: ShimExits;
  /** Returns undefined while containerd is not running. */
  pid(): number | undefined;
  /** Resolves when containerd has exited. Containers keep running. */
  stop(): Promise<void>;
  /** Ends all remaining containers and containerd, and clears the state of the run: see clearRunState(). */
  shutdown(): Promise<void>;
  /** The listener is called each time containerd has exited unexpectedly. containerd is then restarted automatically. */
  onExit(listener: (exit: ContainerdExit) => void): void;
}

/**
 * Starts containerd, and resolves when it serves CRI. Rejects with a UserError if a program is missing or containerd does not start, and
 * with the signal's reason if `signal` aborts meanwhile. Also rejects if a containerd that a killed engine has left does not end, or if the
 * run folder or the configuration cannot be prepared.
 */
export async function startContainerd(options: ContainerdOptions, signal?: AbortSignal): Promise<Containerd> {
  const program = requireProgram('containerd');
  requireProgram('runc');
  const { dataDir, log, timers } = options;
  const paths = containerdPaths(dataDir);
  const shimExits = createShimExits({ state: paths.state, log, timers });
  try {
    await shimExits.watch();
    await endLeftover(paths, log, timers);
    await prepareRunFolder(paths);
    writeConfiguration(paths, options);
    return await superviseProgram(program, options, shimExits, signal);
  } catch (error) {
    shimExits.unwatch();
    throw error;
  }
}

async function superviseProgram(
  program: string,
  options: ContainerdOptions,
  shimExits: ShimExits,
  signal?: AbortSignal,
): Promise<Containerd> {
  const { dataDir, log, timers } = options;
  const paths = containerdPaths(dataDir);
  const endpoint = `unix://${paths.socket}`;
  const logFile = openLogFile(paths.log);
  const launch = (until?: AbortSignal) => launchContainerd({ program, paths, logFile, timers }, until);
  const supervising = superviseContainerd({ launch, beforeRestart: shimExits.watch, log, timers }, signal);
  const { version, pid, onExit, stop } = await supervising.catch((error: unknown) => {
    logFile.close();
    throw error;
  });

  const stopAll = async (): Promise<void> => {
    await stop();
    shimExits.unwatch();
    logFile.close();
  };
  let stopped: Promise<void> | undefined;
  const stopOnce = (): Promise<void> => {
    stopped ??= stopAll();
    return stopped;
  };
  return {
    endpoint,
    version,
    shimExits,
    pid,
    stop: stopOnce,
    shutdown: async () => {
      if (pid() !== undefined) await endSandboxes(endpoint, log);
      await stopOnce();
      await clearRunState(options);
    },
    onExit,
  };
}

function writeConfiguration(paths: ContainerdPaths, options: ContainerdOptions): void {
  for (const folder of [paths.home, options.cniConfDir]) ensurePrivateFolder(folder);
  const restrictOomScoreAdj = !hasCapability(CAP_SYS_RESOURCE);
  writeFileAtomic(paths.config, containerdConfig(paths, { ...options, restrictOomScoreAdj }));
}

const CAP_SYS_RESOURCE = 24n;

function hasCapability(bit: bigint): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> bit) & 1n) === 1n;
}
