/**
 * Composes the sentences about an engine that does not run or that does not answer yet, and the command that starts the engine. A service
 * is started with a command of systemd, because `lifepod up` would start the engine outside of the service.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { engineProcesses, engineState, hasLockOpen } from '../../engine/data-folder/engine-processes.ts';
import { isStarting, isStopping } from '../../engine/data-folder/lock-line.ts';
import { lostText } from '../../engine/data-folder/lost-folder.ts';
import { unusableFolder } from '../../engine/data-folder/new-folder.ts';
import { dnsProcesses, type FoundProcess, runtimeProcesses } from '../../engine/leftovers.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { dataDirOwner, realFolder } from '../../platform/files.ts';
import { isSuspended, processAgeMillis } from '../../platform/processes.ts';
import { runsAsRoot } from '../../platform/programs/pid-namespace.ts';
import { asRoot, needsSudo, shellQuoted } from '../../platform/programs/typed-program.ts';
import { isBeingEnded } from '../ending/turns.ts';
import { hintsFor } from '../hints.ts';
import { otherFolders, readableFolders } from '../kubeconfig/engine-folders.ts';
import { START_MILLIS } from './engine-start.ts';
import { runsAsService, type ServiceState, serviceState } from './service-state.ts';

/** Returns the command that starts the engine. An undefined `dataDir` means the default folder. */
export function startCommand(
  dataDir: string | undefined,
  env: NodeJS.ProcessEnv,
  service: ServiceState | undefined,
  sudo = needsSudo(env),
): string {
  if (service !== undefined) return asRoot('systemctl start lifepod', env, sudo);
  return hintsFor({ dataDir }, env, undefined, sudo).start();
}

/**
 * Returns the end of a sentence about an engine that does not run: how to start it, and other engines that the user may mean. `remove`: how
 * to remove what it has left, as in "end them with 'lifepod down'".
 */
export function waysToStart(
  dataDir: string,
  env: NodeJS.ProcessEnv,
  service?: ServiceState,
  remove?: string,
  folders = readableFolders,
  isStopped = hasStopped,
  serviceOf = serviceState,
): string {
  const all = folders(env);
  const other = otherFolders(dataDir, env, () => all.filter((folder) => !isStopped(folder)));
  const [stopped] = all.filter((folder) => folder !== dataDir && isStopped(folder));
  const isOnlyStopped = other === undefined && otherFolders(dataDir, env, () => all) !== undefined;
  const startOther =
    stopped !== undefined && isOnlyStopped
      ? `start the engine in ${stopped} with '${startCommand(stopped, env, serviceOf(stopped))}'`
      : undefined;
  const ways = [`start it with '${startCommand(dataDir, env, service)}'`, remove, other, startOther];
  return ways.filter((way) => way !== undefined).join(', or ');
}

/**
 * Returns the sentence about an engine that has not locked its data folder. `pods`: how many Pods may still run. `hasDns`: whether the DNS
 * process still runs. `lost`: the sentence if the data folder was deleted. `isEnding`: whether a process ends what the engine has left.
 * `launched`: the PID of an engine that is going to lock the folder.
 */
export function notRunning(
  dataDir: string,
  env: NodeJS.ProcessEnv = process.env,
  service: ServiceState | undefined = serviceState(dataDir),
  pods: number | 'unknown' = podsLeftIn(dataDir),
  hasDns = dnsProcesses(dataDir).length > 0,
  lost = lostText(dataDir),
  isEnding = isBeingEnded(dataDir),
  launched = launchedEngine(dataDir),
): string {
  if (lost !== undefined) return lost;
  if (isEnding) return `lifepod is stopping in ${dataDir}: try again when it has stopped`;
  // The process of a service locks the data folder some time after systemd has started it.
  if (service === 'starting' || service === 'running') return serviceStarts(dataDir);
  if (service === 'failing') {
    return `lifepod is not running in ${dataDir}: the service lifepod has failed, and starts again: '${journalCommand(env)}' prints its log`;
  }
  if (launched !== undefined) return engineStarts(dataDir, launched);
  const unusable = service === undefined ? unusableFolder(dataDir) : undefined;
  if (unusable !== undefined) return unusable;
  const down = hintsFor({ dataDir }, env).engine('down');
  const ways = (remove?: string): string => waysToStart(dataDir, env, service, remove && `${remove} with '${down}'`);
  const what = `lifepod is not running in ${dataDir}`;
  if (!hasDns && (pods === 0 || pods === 'unknown')) return `${what}: ${ways()}`;
  // The DNS process has survived the engine, so the machine has not been restarted since, and Pods may still run.
  if (pods === 'unknown')
    return `${what}, but its DNS and its network remain, and Pods may be running: ${ways('end and remove all of them')}`;
  if (pods === 0) return `${what}, but its DNS and its network remain: ${ways('remove them')}`;
  const [some, them] = pods === 1 ? ['one of its Pods', 'the Pod'] : [`${pods} of its Pods`, 'them'];
  return `${what}, but ${some} may be: ${ways(`end ${them}`)}`;
}

/**
 * Returns the PID of a process of root that was just started as the engine of the folder and will lock it. An older process without the
 * lock is about to end. Processes of other users are ignored, because any user can start a process with such a command line.
 */
export const launchedEngine = (dataDir: string): number | undefined =>
  engineProcesses().find((each) => each.dataDir === realFolder(dataDir) && runsAsRoot(each.pid) && isNew(each.pid))
    ?.pid;

function isNew(pid: number): boolean {
  try {
    return processAgeMillis(pid) < START_MILLIS;
  } catch {
    return false;
  }
}

/**
 * Returns whether Pods of the engine may run; true if the user may not read the data folder. Pods in a private containerd have shims; other
 * Pods have a folder.
 */
export function mayRunPods(dataDir: string): boolean {
  try {
    return readEngineRecord(dataDir)?.containerRuntimeEndpoint === undefined
      ? runtimeProcesses(dataDir).some(isShim)
      : readdirSync(join(dataDir, 'pods')).length > 0;
  } catch {
    return true;
  }
}

/**
 * Returns the number of Pods of a stopped engine that may still run; 0 if the engine has ended them. `unknown`: Pods may run in the
 * machine's own container runtime, or this cannot be found out.
 */
export function podsLeftIn(
  dataDir: string,
  recordOf = readEngineRecord,
  processesOf = runtimeProcesses,
): number | 'unknown' {
  const shims = (): number => processesOf(dataDir).filter(isShim).length;
  try {
    const record = recordOf(dataDir);
    if (record?.state !== 'up') return 0;
    return record.containerRuntimeEndpoint === undefined ? shims() : mayRunPods(dataDir) ? 'unknown' : 0;
  } catch {
    // All users may read the command lines of processes.
    return shims() || 'unknown';
  }
}

export const isShim = ({ commandLine }: FoundProcess): boolean => /shim/.test(commandLine[0] ?? '');

/** Returns whether an engine has been started in the data folder and none runs now. Returns false if this is not known. */
export function hasStopped(dataDir: string): boolean {
  try {
    return readEngineRecord(dataDir) !== undefined && dataDirOwner(dataDir) === undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' && engineState(dataDir) === 'stopped';
  }
}

const serviceStarts = (dataDir: string): string =>
  `lifepod is starting in ${dataDir} as the service lifepod: try again when it is ready`;

export const engineStarts = (dataDir: string, pid: number): string =>
  `lifepod is starting in ${dataDir} (PID ${pid}): try again when it is ready`;

/**
 * Returns the sentence about an engine whose API does not answer because the engine is starting or stopping; undefined if neither is known.
 * `refuses`: the API refuses connections. A service whose API accepts them has started.
 */
export function changingNow(
  dataDir: string,
  refuses = true,
  service: ServiceState | undefined = serviceState(dataDir),
): string | undefined {
  if (service === 'starting' && refuses) return serviceStarts(dataDir);
  try {
    const pid = dataDirOwner(dataDir);
    if (pid === undefined) return undefined;
    if (isStopping(dataDir)) return `lifepod is stopping in ${dataDir} (PID ${pid}): try again when it has stopped`;
    return isStarting(dataDir) ? engineStarts(dataDir, pid) : undefined;
  } catch {
    // A command has locked the folder, this user may not read it, or the engine has just ended.
    return undefined;
  }
}

/**
 * Returns the sentence about a running engine whose API does not answer, although it is not starting. `log`: the command that prints its
 * log. `isHalted`: whether the process is suspended.
 */
export function apiHangs(
  dataDir: string,
  pid: number,
  server: string,
  log = logCommand(dataDir, pid),
  isHalted = isEngineSuspended(dataDir, pid),
): string {
  const next = isHalted
    ? `the process is suspended, and '${continueCommand(pid)}' continues it`
    : log === undefined
      ? 'see its output'
      : `'${log}' prints its log`;
  return `lifepod is running (PID ${pid}), but its API does not answer at ${server}: ${next}`;
}

export const continueCommand = (pid: number): string => asRoot(`kill -CONT ${pid}`, process.env);

/** Returns false for an engine in a container, whose PID may be that of an unrelated process. */
export const isEngineSuspended = (dataDir: string, pid: number): boolean =>
  isSuspended(pid) && hasLockOpen(dataDir, pid);

/** The journal shows a user who is not root only messages of that user. */
export const journalCommand = (env: NodeJS.ProcessEnv, sudo = needsSudo(env)): string =>
  asRoot('journalctl -u lifepod', env, sudo);

/**
 * Returns the command that prints the log of a running engine; undefined if the engine logs neither to the journal nor to its data folder.
 */
export function logCommand(dataDir: string, pid: number, isService = runsAsService(dataDir, pid)): string | undefined {
  if (isService) return journalCommand(process.env);
  const log = `${dataDir}/lifepod.log`;
  try {
    return readlinkSync(`/proc/${pid}/fd/2`) === log ? asRoot(`less ${shellQuoted(log)}`, process.env) : undefined;
  } catch {
    return undefined;
  }
}
