import { spawn } from 'node:child_process';
import { chmodSync, rmSync, watch } from 'node:fs';
import { getPriority } from 'node:os';
import { UserError } from '../../platform/files.ts';
import type { Timers } from '../../platform/platform.ts';
import { searchFolders } from '../../platform/programs/programs.ts';
import { type Connection, connect, runtimeInitialized } from '../cri/connection.ts';
import type { LogFile } from './log-file.ts';
import type { ContainerdPaths } from './paths.ts';

export interface ContainerdExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface LaunchOptions {
  program: string;
  paths: ContainerdPaths;
  logFile: LogFile;
  timers: Timers;
}

export interface ContainerdProcess {
  /** Returns undefined when the process has exited. */
  pid(): number | undefined;
  readonly exited: Promise<ContainerdExit>;
  /**
   * Resolves with containerd's version when containerd serves CRI. The process is killed if containerd does not serve CRI within 60 s, if a
   * call to containerd fails, or if the launch is aborted. Rejects if the process exits or is killed before containerd serves CRI.
   */
  readonly ready: Promise<string>;
  /** Sends SIGTERM, and SIGKILL after 10 s. Resolves when the process has exited. */
  end(): Promise<void>;
}

const START_MILLIS = 60_000;
const STOP_MILLIS = 10_000;

export function launchContainerd(options: LaunchOptions, signal?: AbortSignal): ContainerdProcess {
  signal?.throwIfAborted();
  const { program, paths, logFile, timers } = options;
  const giveUp = new AbortController();
  const listening = socketCreated(paths, giveUp.signal);
  const { child, exited } = spawnContainerd(program, paths, logFile.fd);
  let hasExited = false;
  void exited.then(() => {
    hasExited = true;
  });

  const untilReady = async (): Promise<string> => {
    const interrupt = (): void => giveUp.abort(signal?.reason);
    signal?.addEventListener('abort', interrupt);
    try {
      return await servesCri(options, { listening, exited, giveUp });
    } catch (error) {
      child.kill('SIGKILL');
      await exited;
      throw signal?.aborted === true ? signal.reason : error;
    } finally {
      signal?.removeEventListener('abort', interrupt);
    }
  };
  return {
    pid: () => (hasExited ? undefined : child.pid),
    exited,
    ready: untilReady(),
    end: async () => {
      if (hasExited) return;
      child.kill('SIGTERM');
      const timer = timers.at(timers.now() + STOP_MILLIS, () => child.kill('SIGKILL'));
      await exited;
      timer.cancel();
    },
  };
}

/** Besides PATH, only these environment variables are passed to containerd, and therefore to its shims and CNI plugins. */
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
  const env: NodeJS.ProcessEnv = { PATH: searchFolders(process.env['PATH']).join(':') };
  for (const name of PASSED_VARIABLES) if (process.env[name] !== undefined) env[name] = process.env[name];
  // `detached` starts a new session, so that Ctrl-C on the engine's terminal does not reach containerd.
  // `nice` restores the default priority: the engine may have raised its own, and containers inherit the priority of containerd.
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

/**
 * Deletes the socket of an earlier containerd, and resolves when a new socket is created. Must be called before containerd starts, so that
 * the creation is not missed. Rejects on abort.
 */
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

/**
 * Resolves with containerd's version when containerd serves CRI. Rejects with a UserError if containerd exits earlier, a call to containerd
 * fails, `giveUp` is aborted, or 60 s have passed. Aborts `giveUp` at the end, which ends the wait for the socket.
 */
async function servesCri(
  { paths, logFile, timers }: LaunchOptions,
  spawned: { listening: Promise<void>; exited: Promise<ContainerdExit>; giveUp: AbortController },
): Promise<string> {
  const { listening, exited, giveUp } = spawned;
  const late = `it does not serve CRI within ${START_MILLIS / 1000} s; if the machine was busy, try again`;
  const timer = timers.at(timers.now() + START_MILLIS, () => giveUp.abort(new Error(late)));
  const connection = connect(`unix://${paths.socket}`);
  const ended = exited.then((exit) => {
    throw new Error(`it ended with ${exit.signal ?? `exit code ${exit.code}`}`);
  });
  const version = listening.then(() => versionOf(connection, paths, timers, giveUp.signal));
  try {
    return await Promise.race([ended, version]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UserError(`containerd does not start: ${reason}; ${endOfLog(paths.log, logFile.tail())}`);
  } finally {
    giveUp.abort();
    timer.cancel();
    connection.close();
  }
}

/**
 * Matches a message that containerd logs at its first start, before the CNI configuration exists. containerd reads the configuration as
 * soon as the file is written.
 */
const HARMLESS = /failed to load cni during init/;

/** Returns the end of the log for the error, because a first start that fails removes the log file with the data folder. */
function endOfLog(path: string, tail: string): string {
  const lines = tail.split('\n').filter((line) => line !== '' && !HARMLESS.test(line));
  return lines.length === 0 ? `its log ${path} shows no cause` : `the end of its log ${path}: ${lines.join('\n')}`;
}

/** containerd may listen before it serves CRI. Makes its socket private, and resolves with its version. */
async function versionOf(
  connection: Connection,
  paths: ContainerdPaths,
  timers: Timers,
  signal: AbortSignal,
): Promise<string> {
  await runtimeInitialized(connection, timers, signal);
  chmodSync(paths.socket, 0o600);
  const { runtimeVersion } = await connection.unary<{ runtimeVersion: string }>(
    'runtime.v1.RuntimeService/Version',
    { version: 'v1' },
    signal,
  );
  return runtimeVersion;
}
