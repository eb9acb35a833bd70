/** Starts the engine as a background process, for `lifepod up --detach` and for commands that need a running engine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { auditFlags } from '../../engine/audit/audit-settings.ts';
import { authenticationFlags } from '../../engine/authentication/authentication-settings.ts';
import { visibleOwner } from '../../engine/data-folder/engine-processes.ts';
import { checkDataFormat } from '../../engine/data-folder/format.ts';
import { isStopping } from '../../engine/data-folder/lock-line.ts';
import { refuseLost } from '../../engine/data-folder/lost-folder.ts';
import { IMAGE_FLAGS } from '../../engine/image-settings.ts';
import { checkMachine } from '../../engine/machine-checks.ts';
import type { Waiting } from '../../engine/node-ready.ts';
import { nodeOptionFlags } from '../../engine/node-settings.ts';
import { API_FLAGS } from '../../engine/options/api-settings.ts';
import { ENCRYPTION_FLAG } from '../../engine/options/encryption-settings.ts';
import { readEngineRecord, type UpOptions, usesPrivateContainerd } from '../../engine/settings.ts';
import { settledRecord } from '../../engine/start/first-start.ts';
import { refuseRuntimeChange } from '../../engine/start/runtime-change.ts';
import { refuseUnusableStart } from '../../engine/start/usable-folder.ts';
import { dataDirOwner, ensureDataDir, UserError } from '../../platform/files.ts';
import { removeFolders } from '../../platform/folders/folders.ts';
import { nodePlatform, systemTimers } from '../../platform/node-js.ts';
import type { Timers } from '../../platform/platform.ts';
import { isSuspended } from '../../platform/processes.ts';
import { hintsFor } from '../hints.ts';
import { orOtherFolder, readableFolders } from '../kubeconfig/engine-folders.ts';
import { InterruptedError, type InterruptingSignal } from '../signals.ts';
import { printWaiting, type ReadyEngine, type StartReport } from '../up.ts';

/** A longer lifepod.log is renamed to lifepod.log.1 before an engine starts in the background. */
const LONG_LOG_BYTES = 10 * 1024 * 1024;

/** A starting engine that is suspended, or has reported why its node is not ready, is stopped after this time. */
const PATIENCE_MILLIS = 60_000;

/** An engine that is to stop but hangs is killed after this time. */
const STOP_MILLIS = 60_000;

const MAIN = process.argv[1] ?? '';

/**
 * Starts an engine, and resolves when the engine is ready. Rejects if the engine does not become ready. Until then, an abort of `signal`
 * stops the engine; without `signal`, Ctrl+C and SIGTERM stop the engine.
 */
export async function startDetached(options: UpOptions, signal?: AbortSignal): Promise<ReadyEngine> {
  if (signal !== undefined) return startUntil(options, signal);
  const stopping = new AbortController();
  const interrupt = (name: NodeJS.Signals): void =>
    stopping.abort(new InterruptedError(`stopped by ${name}`, name as InterruptingSignal));
  // Without these handlers, a signal would end this process, but not the detached engine.
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  try {
    return await startUntil(options, stopping.signal);
  } catch (error) {
    if (!(error instanceof InterruptedError)) throw error;
    const pid = visibleOwner(options.dataDir);
    if (pid !== undefined) throw interruption(error, pid);
    const { withRemains } = await import('./interrupted-start.ts');
    throw withRemains(error, options.dataDir);
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  }
}

/** Like startDetached(), but resolves with the PID of the running engine if another process has started one. */
export async function startUnlessRunning(
  options: UpOptions,
  signal?: AbortSignal,
): Promise<ReadyEngine | { pid: number }> {
  // A second process would also find the running engine, but only after it has loaded its code, which takes long on a busy machine.
  const running = visibleOwner(options.dataDir);
  if (running !== undefined && !isStopping(options.dataDir)) {
    await refuseRuntimeChange(options, settledRecord(options.dataDir), nodePlatform('error'));
    return { pid: running };
  }
  return startDetached(options, signal).catch((error: unknown) => {
    const pid = runningPid(error);
    if (pid === undefined) throw error;
    return { pid };
  });
}

/** Returns the PID of the running engine that prevented a start; undefined for other errors. */
export function runningPid(error: unknown): number | undefined {
  const [, pid] = /is in use by a running lifepod \(PID (\d+)\)/.exec((error as Error).message) ?? [];
  return error instanceof UserError && pid !== undefined ? Number(pid) : undefined;
}

/** Returns the error of an interrupted start. `pid`: a running engine that the interruption does not affect. */
export const interruption = (error: InterruptedError, pid: number): InterruptedError =>
  new InterruptedError(`interrupted: the engine (PID ${pid}) continues to run`, error.signal);

async function startUntil(options: UpOptions, stop: AbortSignal): Promise<ReadyEngine> {
  stop.throwIfAborted();
  checkMachine(() => usesPrivateContainerd(options));
  const { dataDir } = options;
  checkDataFormat(dataDir);
  await refuseLost(dataDir, systemTimers());
  const record = settledRecord(dataDir);
  await refuseRuntimeChange(options, record, nodePlatform('error'));
  stop.throwIfAborted();
  refuseUnusableStart(options, record);
  const logPath = join(dataDir, 'lifepod.log');
  const created = ensureDataDir(dataDir);
  const isNewLog = !existsSync(logPath);
  const log = openLog(logPath);
  const child = spawn(process.execPath, [...process.execArgv, MAIN, 'up', ...argumentsOf(options)], {
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  const interrupt = (): void => stopEngine(child, systemTimers());
  stop.addEventListener('abort', interrupt, { once: true });
  try {
    const exited = once(child, 'exit');
    exited.catch(() => undefined);
    const report = await startReport(child, systemTimers(), printWaiting);
    if (report !== undefined && 'ready' in report && !stop.aborted) return report.ready;
    // The engine reports a failure before it exits, and holds the lock on the data folder until its exit.
    await exited;
    // The log of an engine that reported its failure or was interrupted is of no use.
    if (stop.aborted || report !== undefined) removeLog(dataDir, isNewLog ? [logPath] : [], created);
    const killed = child.signalCode === 'SIGKILL' ? killedText(child.pid, dataDir) : '';
    const { reason } = stop;
    if (stop.aborted && killed !== '' && reason instanceof InterruptedError)
      throw new InterruptedError(`${reason.message}${killed}`, reason.signal);
    if (stop.aborted) throw reason;
    if (report !== undefined && 'error' in report)
      throw new UserError(`${startError(report.error, dataDir, process.env)}${killed}`);
    throw new UserError(`${endText(child)} before it was ready: see its log ${logPath}`);
  } finally {
    stop.removeEventListener('abort', interrupt);
    child.unref();
  }
}

/**
 * Returns the message about an engine that did not start. If another engine prevents the start, the user may mean that one, so the message
 * may name the data folders of the engines whose kubeconfig the user has.
 */
export const startError = (
  error: string,
  dataDir: string,
  env: NodeJS.ProcessEnv,
  folders = readableFolders,
): string => (error.includes('another engine of lifepod') ? `${error}${orOtherFolder(dataDir, env, folders)}` : error);

function removeLog(dataDir: string, files: readonly string[], folders: readonly string[]): void {
  if (readEngineRecord(dataDir) !== undefined || dataDirOwner(dataDir) !== undefined) return;
  for (const file of files) rmSync(file, { force: true });
  removeFolders(folders);
}

function argumentsOf(options: UpOptions): string[] {
  const flags: [string, string | number | undefined][] = [
    ['--data-dir', options.dataDir],
    ['--port', options.port],
    ['--pod-cidr', options.podCidr],
    ['--service-cidr', options.serviceCidr],
    ['--node-name', options.nodeName],
    ['--container-runtime-endpoint', options.containerRuntimeEndpoint],
    ['--record-age', options.recordAge],
    ['--record-size', options.recordSize],
    ['--max-grace-period-extension', options.maxGracePeriodExtension],
    ['--pod-pids-limit', options.podPidsLimit],
    ...API_FLAGS.map(([flag, key]): [string, string | undefined] => [flag, options[key]]),
    ...IMAGE_FLAGS.map(([flag, key]): [string, string | number | undefined] => [flag, options[key]]),
    ...Object.entries(options.runtimeHandler ?? {}).map(([name, runtime]): [string, string] => [
      '--runtime-handler',
      `${name}=${runtime}`,
    ]),
    ...nodeOptionFlags(options),
    ...authenticationFlags(options),
    ...auditFlags(options),
    [ENCRYPTION_FLAG, options.encryptionProviderConfig],
    ['--log-level', options.logLevel],
    ['--log-format', options.logFormat],
  ];
  const given = flags.flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)]));
  if (options.anyPort === true) given.push('--any-port');
  if (options.forSessions === true) given.push('--for-sessions');
  if (options.shutdownOnStop === true) given.push('--shutdown-on-stop');
  return given;
}

/**
 * Opens the log for appending and returns its file descriptor. Renames a long log first. Throws a UserError if the log is a symbolic
 * link, which could redirect root to any file.
 */
export function openLog(path: string): number {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink() === true) throw new UserError(`the log ${path} is a symbolic link: remove it`);
  if ((found?.size ?? 0) > LONG_LOG_BYTES) renameSync(path, `${path}.1`);
  return openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
}

/** Returns the beginning of a sentence about an engine that ended without a report, because of a signal or an exit. */
export const endText = ({ signalCode, exitCode }: Pick<ChildProcess, 'signalCode' | 'exitCode'>): string =>
  signalCode === null ? `the engine exited with code ${exitCode}` : `${signalCode} ended the engine`;

const killedText = (pid: number | undefined, dataDir: string): string =>
  `; the engine (PID ${pid}) did not end and was killed: '${hintsFor({ dataDir }, process.env).engine('down')}' removes what it has left`;

type StartedProcess = Pick<ChildProcess, 'on' | 'once' | 'kill' | 'pid'>;

/** Stops an engine that is starting. A suspended one continues, so that it ends cleanly. Kills one that has not ended after STOP_MILLIS. */
function stopEngine(child: StartedProcess, timers: Timers): void {
  child.kill('SIGTERM');
  child.kill('SIGCONT');
  const timer = timers.at(timers.now() + STOP_MILLIS, () => void child.kill('SIGKILL'));
  child.once('exit', () => timer.cancel());
}

/**
 * Resolves with the report of a starting engine that it is ready or has failed; with undefined if its process exits without a report. After
 * PATIENCE_MILLIS, stops an engine that is suspended or has reported why its node is not ready; the error then contains the latest reason.
 * An engine that has reported nothing has no time limit, because the machine may be slow: startReport() only calls `waiting`. Rejects if
 * the process cannot be started.
 */
export function startReport(
  child: StartedProcess,
  timers: Timers,
  waiting: Waiting,
  isHalted = isSuspended,
): Promise<{ ready: ReadyEngine } | { error: string } | undefined> {
  let why: string | undefined;
  let isLate = false;
  let timeoutError: string | undefined;
  const giveUp = (): void => {
    if (!isLate || why === undefined || timeoutError !== undefined) return;
    timeoutError = `the node is not ready after ${PATIENCE_MILLIS / 1000} s: ${why}`;
    stopEngine(child, timers);
  };
  const timer = timers.at(timers.now() + PATIENCE_MILLIS, () => {
    isLate = true;
    const { pid = 0 } = child;
    if (why === undefined && isHalted(pid)) why = `the process of the engine (PID ${pid}) was suspended`;
    if (why === undefined) waiting(`the engine (PID ${pid}) is still starting; Ctrl+C stops it`);
    giveUp();
  });
  const reported = new Promise<{ ready: ReadyEngine } | { error: string } | undefined>((resolve, reject) => {
    child.on('message', (message: StartReport) => {
      if (!('waiting' in message)) return resolve(timeoutError === undefined ? message : undefined);
      why = message.waiting;
      waiting(why);
      giveUp();
    });
    child.once('exit', () => resolve(undefined));
    child.once('error', reject);
  });
  return reported
    .finally(() => timer.cancel())
    .then((report) => (timeoutError === undefined ? report : { error: timeoutError }));
}
