/** One containerd process: its start until it serves CRI, and its end. */
import { spawn } from 'node:child_process';
import { chmodSync, rmSync, watch } from 'node:fs';
import { getPriority } from 'node:os';
import { UserError } from '../../platform/files.ts';
import type { Timers } from '../../platform/platform.ts';
import { type Connection, connect, runtimeInitialized } from '../cri/connection.ts';
import type { LogFile } from './log-file.ts';
import type { ContainerdPaths } from './paths.ts';

export interface ContainerdExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface LaunchOptions {
  /** The path of the executable. */
  program: string;
  paths: ContainerdPaths;
  logFile: LogFile;
  timers: Timers;
}

export interface ContainerdProcess {
  /** undefined after its exit. */
  pid(): number | undefined;
  readonly exited: Promise<ContainerdExit>;
  /** Resolves with containerd's version once it serves CRI. Rejects after its exit if it does not, or if the launch is aborted. */
  readonly ready: Promise<string>;
  /** Stops it, by force after 10 s, and waits for its exit. */
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

/** Resolves with containerd's version once it serves CRI. Aborts `giveUp` in any case. */
async function servesCri(
  { paths, logFile, timers }: LaunchOptions,
  spawned: { listening: Promise<void>; exited: Promise<ContainerdExit>; giveUp: AbortController },
): Promise<string> {
  const { listening, exited, giveUp } = spawned;
  const timer = timers.at(timers.now() + START_MILLIS, () => giveUp.abort(new Error('containerd does not answer')));
  const connection = connect(`unix://${paths.socket}`);
  const ended = exited.then((exit) => {
    throw new Error(`containerd ended with ${exit.signal ?? `exit code ${exit.code}`}`);
  });
  const version = listening.then(() => versionOf(connection, paths, timers, giveUp.signal));
  try {
    return await Promise.race([ended, version]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UserError(`containerd does not start (its log is ${paths.log}): ${reason}: ${logFile.tail()}`);
  } finally {
    giveUp.abort();
    timer.cancel();
    connection.close();
  }
}

/** Waits until the listening containerd serves CRI; makes its socket private. */
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
