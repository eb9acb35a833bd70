/**
 * A private containerd as a child process of the engine: configured, started, watched and restarted.
 *
 * Containers do not depend on containerd: their shims keep them running, and each new containerd adopts them. So it can be
 * stopped and started freely; only clearRunState() ends containers.
 *
 * Invariants:
 * 1. One containerd per data folder: one that is left of a killed engine is ended before a new one starts.
 * 2. Until stop(), a child that exits is restarted, with growing delays while it does not stay up.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, readFileSync, rmSync, watch } from 'node:fs';
import { getPriority } from 'node:os';
import { ensurePrivateFolder, UserError, writeFileAtomic } from '../../platform/files.ts';
import type { Log, Millis, Timers } from '../../platform/platform.ts';
import { findProgram } from '../../platform/processes.ts';
import { type Connection, connect, delay, runtimeInitialized } from '../cri/connection.ts';
import { containerdConfig } from './config.ts';
import { openLogFile } from './log-file.ts';
import { type ContainerdPaths, containerdPaths } from './paths.ts';
import { clearRunState, endLeftover, endSandboxes, prepareRunFolder } from './run-state.ts';
import { createShimExits, type ShimExits } from './shim-exits.ts';

export interface ContainerdOptions {
  dataDir: string;
  log: Log;
  timers: Timers;
  /** Reference of an image that is present or can be pulled. */
  sandboxImage: string;
  cniConfDir: string;
  cniBinDir: string;
  /** In addition to runc, by name: see ConfigOptions. */
  runtimeHandlers?: Readonly<Record<string, string>>;
}

export interface ContainerdExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Containerd {
  /** unix:///… for connectRuntime. */
  readonly endpoint: string;
  readonly version: string;
  /** Exits of containers while containerd is down. The event listener calls unwatch() once it can no longer miss events. */
  readonly shimExits: ShimExits;
  /** undefined while it is down. */
  pid(): number | undefined;
  /** Stops containerd and waits until it has ended; containers keep running. */
  stop(): Promise<void>;
  /** Ends every container that is left, then containerd, and leaves nothing behind but images: see clearRunState. */
  shutdown(): Promise<void>;
  /** Called when containerd has exited unexpectedly; it is then restarted automatically. */
  onExit(listener: (exit: ContainerdExit) => void): void;
}

const START_MILLIS = 60_000;
const STOP_MILLIS = 10_000;
const FIRST_RESTART_MILLIS = 50;
const LONGEST_RESTART_MILLIS = 10_000;
/** A containerd that has lived this long counts as stable. */
const STABLE_MILLIS = 30_000;

/** Resolves once containerd serves CRI. Rejects with a UserError that says what is missing, or when `signal` aborts first. */
export async function startContainerd(options: ContainerdOptions, signal?: AbortSignal): Promise<Containerd> {
  const program = findProgram('containerd');
  if (program === undefined) throw new UserError(`the command 'containerd' is missing: install the package containerd`);
  if (findProgram('runc') === undefined) throw new UserError(`the command 'runc' is missing: install the package runc`);
  const { dataDir, log, timers } = options;
  const paths = containerdPaths(dataDir);
  const shimExits = createShimExits({ state: paths.state, log, timers });
  try {
    await shimExits.watch();
    await endLeftover(paths, log, timers);
    await prepareRunFolder(paths);
    writeConfiguration(paths, options);
    return await supervise(program, options, shimExits, signal);
  } catch (error) {
    shimExits.unwatch();
    throw error;
  }
}

async function supervise(
  program: string,
  options: ContainerdOptions,
  shimExits: ShimExits,
  signal?: AbortSignal,
): Promise<Containerd> {
  const { dataDir, log, timers } = options;
  const paths = containerdPaths(dataDir);
  const logFile = openLogFile(paths.log);
  const exitListeners: ((exit: ContainerdExit) => void)[] = [];
  const stopping = new AbortController();
  let child: ChildProcess | undefined;
  let restartWait = FIRST_RESTART_MILLIS;
  let restarting = Promise.resolve();

  const start = async (until?: AbortSignal): Promise<string> => {
    until?.throwIfAborted();
    const startedAt = timers.now();
    const giveUp = new AbortController();
    const interrupt = (): void => giveUp.abort(until?.reason);
    until?.addEventListener('abort', interrupt);
    const listening = socketCreated(paths, giveUp.signal);
    const spawned = spawnContainerd(program, paths, logFile.fd);
    child = spawned.child;
    const exited = spawned.exited.then((exit) => {
      child = undefined;
      return exit;
    });
    try {
      return await ready(paths, { listening, exited, giveUp }, () => logFile.tail(), timers);
    } catch (error) {
      spawned.child.kill('SIGKILL');
      await exited;
      throw until?.aborted === true ? until.reason : error;
    } finally {
      until?.removeEventListener('abort', interrupt);
      void exited.then((exit) => onChildExit(exit, startedAt));
    }
  };
  const onChildExit = (exit: ContainerdExit, startedAt: Millis): void => {
    if (stopping.signal.aborted || !keep) return;
    if (timers.now() - startedAt > STABLE_MILLIS) restartWait = FIRST_RESTART_MILLIS;
    log.warn('containerd ended; starting it again', { ...exit, waitMillis: restartWait });
    for (const listener of exitListeners) listener(exit);
    restarting = restart();
  };
  const restart = async (): Promise<void> => {
    const wait = restartWait;
    restartWait = Math.min(restartWait * 2, LONGEST_RESTART_MILLIS);
    await delay(wait, timers, stopping.signal).catch(() => undefined);
    await shimExits.watch();
    if (stopping.signal.aborted) return;
    await start().then(
      () => log.info('containerd is back'),
      (error) => log.error('containerd does not start', { error: String(error) }),
    );
  };
  const stop = async (): Promise<void> => {
    stopping.abort();
    if (child !== undefined) await endChild(child, timers);
    await restarting;
    shimExits.unwatch();
    logFile.close();
  };

  // The caller handles a failed first start: only later ends restart containerd.
  let keep = false;
  let version: string;
  try {
    version = await start(signal);
    keep = true;
  } catch (error) {
    logFile.close();
    throw error;
  }
  let stopped: Promise<void> | undefined;
  const stopOnce = (): Promise<void> => {
    stopped ??= stop();
    return stopped;
  };
  return {
    endpoint: `unix://${paths.socket}`,
    version,
    shimExits,
    pid: () => child?.pid,
    stop: stopOnce,
    shutdown: async () => {
      if (child !== undefined) await endSandboxes(`unix://${paths.socket}`, log);
      await stopOnce();
      await clearRunState(options);
    },
    onExit: (listener) => {
      exitListeners.push(listener);
    },
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

/** The variables that containerd, its shims and CNI plugins need; they get no others of the engine's environment. */
const PASSED_VARIABLES = [
  'TZ',
  'LANG',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];

function spawnContainerd(program: string, paths: ContainerdPaths, logFd: number) {
  const env: NodeJS.ProcessEnv = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/bin:/sbin:/bin` };
  for (const name of PASSED_VARIABLES) if (process.env[name] !== undefined) env[name] = process.env[name];
  // A session of its own: Ctrl-C on the engine's terminal is meant for the engine.
  // The engine may have raised its own priority, which containers must not inherit through containerd.
  const child = spawn('nice', ['-n', String(-getPriority()), program, '--config', paths.config], {
    cwd: '/',
    detached: true,
    env,
    stdio: ['ignore', logFd, logFd],
  });
  const exited = new Promise<ContainerdExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: null, signal: null }));
  });
  return { child, exited };
}

/** Resolves with containerd's version once it serves CRI. */
async function ready(
  paths: ContainerdPaths,
  spawned: { listening: Promise<void>; exited: Promise<ContainerdExit>; giveUp: AbortController },
  logTail: () => string,
  timers: Timers,
): Promise<string> {
  const { listening, exited, giveUp } = spawned;
  const timer = timers.at(timers.now() + START_MILLIS, () => giveUp.abort(new Error('containerd does not answer')));
  const connection = connect(`unix://${paths.socket}`);
  const ended = exited.then((exit) => {
    throw new Error(`containerd ended with ${exit.signal ?? `exit code ${exit.code}`}`);
  });
  try {
    return await Promise.race([ended, servesCri(connection, paths, listening, timers, giveUp.signal)]);
  } catch (error) {
    throw new UserError(`containerd does not start (its log is ${paths.log}): ${reason(error)}: ${logTail()}`);
  } finally {
    giveUp.abort();
    timer.cancel();
    connection.close();
  }
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function servesCri(
  connection: Connection,
  paths: ContainerdPaths,
  listening: Promise<void>,
  timers: Timers,
  signal: AbortSignal,
): Promise<string> {
  await listening;
  await runtimeInitialized(connection, timers, signal);
  chmodSync(paths.socket, 0o600);
  const { runtimeVersion } = await connection.unary<{ runtimeVersion: string }>(
    'runtime.v1.RuntimeService/Version',
    { version: 'v1' },
    signal,
  );
  return runtimeVersion;
}

/** Resolves when containerd begins to listen. Must be called before containerd starts: the socket is created only once. */
function socketCreated(paths: ContainerdPaths, signal: AbortSignal): Promise<void> {
  rmSync(paths.socket, { force: true });
  return new Promise((resolve, reject) => {
    const watcher = watch(paths.run, { signal }, (_, name) => {
      if (name !== 'containerd.sock') return;
      watcher.close();
      resolve();
    });
    watcher.once('error', reject);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

async function endChild(child: ChildProcess, timers: Timers): Promise<void> {
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = timers.at(timers.now() + STOP_MILLIS, () => child.kill('SIGKILL'));
  await exited;
  timer.cancel();
}
