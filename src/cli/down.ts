/**
 * `lifepod down`: deletes every Pod, stops the engine, then removes the processes, mounts, networks and control groups that the engine
 * left on the machine. Keeps the data folder. May be repeated.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { resourcePrefix } from '../apiserver/cache/keys.ts';
import { requireLocalEngine } from '../engine/data-folder/engine-processes.ts';
import { checkDataFormat } from '../engine/data-folder/format.ts';
import { isStarting, isStopping, untilReleasedBy, untilStarted } from '../engine/data-folder/lock-line.ts';
import { connectOwnRuntime } from '../engine/engine-runtime.ts';
import { clearMachine, hasPodFolders } from '../engine/leftovers.ts';
import { requireRoot } from '../engine/machine-checks.ts';
import { type EngineRecord, readEngineRecord, resolveSettings } from '../engine/settings.ts';
import { clearFirstStart, recordDown, settledRecord } from '../engine/start/first-start.ts';
import { dropBallast } from '../platform/disk-reserve.ts';
import { dataDirOwner, lockDataDir, UserError } from '../platform/files.ts';
import { nodePlatform } from '../platform/node-js.ts';
import { untilAborted } from '../platform/on-abort.ts';
import { sendSignal } from '../platform/processes.ts';
import { openLmdbStore } from '../store/lmdb/lmdb-store.ts';
import { StorageFullError } from '../store/store.ts';
import { startDetached } from './detached/detach.ts';
import { removeRest } from './end-pods.ts';
import { CONTAINERS_END_MILLIS, type DownSettings, downAgain, endEngine, type Say } from './ending/end-engine.ts';
import { type Turn, takeTurn } from './ending/turns.ts';
import { orOtherFolder } from './kubeconfig/engine-folders.ts';
import { endLost, endLostEngines, refuseMoved } from './lost/end-lost.ts';
import { printLine } from './progress/standard-output.ts';
import { serviceStart } from './service/service-start.ts';
import { readRecords } from './session/session-records.ts';

/** `hadLost`: endLostEngines() has ended an engine whose data folder was deleted, and has said that its containers may still run. */
const nothingLeft = (dataDir: string, hadLost: boolean): string =>
  `nothing ${hadLost ? 'else ' : ''}from ${dataDir} is running or mounted any more`;

const onFullDisk = (dataDir: string, { message }: StorageFullError): string =>
  `${nothingLeft(dataDir, false)}, but its store may contain Pods, which the next start would run again: ${message}, with '${downAgain(dataDir)}'`;

/**
 * Ends the Pods and the engine of the data folder, and removes everything else of that engine from the machine. Calls `say` with each line
 * of the report. Rejects with the reason of the signal if it aborts.
 */
export async function down(
  dataDir: string,
  say: Say = printLine,
  settings: DownSettings = { signal: new AbortController().signal },
): Promise<void> {
  requireRoot();
  checkDataFormat(dataDir);
  const turn = await takeTurn(dataDir, say, settings.signal);
  try {
    await downInTurn(dataDir, turn, say, settings);
  } finally {
    turn.release();
  }
}

async function downInTurn(dataDir: string, turn: Turn, say: Say, settings: DownSettings): Promise<void> {
  const { signal } = settings;
  let pid = await runningEngine(dataDir, say, signal);
  if (pid === undefined || settledRecord(dataDir) === undefined) {
    await turn.own();
    if (dataDirOwner(dataDir) === undefined) await serviceStart(dataDir, say, signal);
    pid = dataDirOwner(dataDir);
  }
  if (pid !== undefined) {
    requireLocalEngine(dataDir, pid);
    refuseMoved(dataDir, pid);
  }
  const isUsedAgain = pid !== undefined || readEngineRecord(dataDir) !== undefined;
  const hadLost = isUsedAgain && (await endLostEngines(dataDir, say, signal));
  if (hadLost) pid = dataDirOwner(dataDir);
  const record = settledRecord(dataDir);
  if (record === undefined) {
    const hasSettled = await endFirstStart(dataDir, pid, hadLost, say, settings);
    return hasSettled ? downInTurn(dataDir, turn, say, settings) : undefined;
  }
  if (pid !== undefined && isStarting(dataDir)) {
    await turn.share();
    say(`waiting until the engine (PID ${pid}) has started`);
    await untilStarted(dataDir, signal);
    // The start may have failed, or the engine may have recorded other options.
    return downInTurn(dataDir, turn, say, settings);
  }
  dropBallast(dataDir);
  const isUp = pid === undefined && record.state === 'up';
  const found = isUp && (readRecords(dataDir).length > 0 || (await hasPodsUnlessFull(dataDir)));
  if (found === true) {
    await refuseBesideOriginal(dataDir, record, signal);
    say('the engine is not running: starting it to end its Pods gracefully');
    // The engine may use any port, because another program may have taken the recorded port while no engine was running.
    await startDetached({ dataDir, anyPort: true }, signal);
    pid = dataDirOwner(dataDir);
  }
  if (pid !== undefined) {
    const ended = endEngine(dataDir, record, pid, turn, say, settings);
    await (found === true ? ended.catch((error: unknown) => stopStarted(dataDir, pid, turn, error)) : ended);
  }
  signal.throwIfAborted();

  const { containerRuntimeEndpoint: endpoint } = record;
  const lock = lockDataDir(dataDir, 'down');
  try {
    const failure = endpoint === undefined ? undefined : await clearRuntime(dataDir, endpoint, signal);
    await untilAborted(signal, clearMachine(dataDir, nodePlatform('warn'), signal));
    if (failure !== undefined) {
      throw new UserError(
        `some containers may remain in the runtime at ${endpoint}: ${failure}; run '${downAgain(dataDir)}' again when the runtime answers`,
      );
    }
    if (found instanceof StorageFullError) throw new UserError(onFullDisk(dataDir, found));
    recordDown(dataDir, record);
  } finally {
    lock.release();
  }
  say(nothingLeft(dataDir, hadLost));
}

/**
 * Stops the engine that down() has started and could not end: no engine ran before the command, and this one may have another port than the
 * recorded one. Its Pods continue to run. Leaves the engine to another process that is ending it. Rejects with `error`.
 */
async function stopStarted(dataDir: string, pid: number, turn: Turn, error: unknown): Promise<never> {
  if (turn.tryOwn() && dataDirOwner(dataDir) === pid) {
    const released = untilReleasedBy(dataDir, pid, new AbortController().signal);
    // A second signal would cut the stop short.
    if (!isStopping(dataDir)) sendSignal(pid, 'SIGTERM');
    await released;
  }
  throw error;
}

/** Resolves with the PID of the engine that has locked the data folder. Waits until an engine that is stopping has stopped. */
async function runningEngine(dataDir: string, say: Say, signal: AbortSignal): Promise<number | undefined> {
  const pid = dataDirOwner(dataDir);
  if (pid === undefined || !isStopping(dataDir)) return pid;
  say(`waiting until the engine (PID ${pid}) has stopped`);
  await untilReleasedBy(dataDir, pid, signal);
  return dataDirOwner(dataDir);
}

/** Rejects with a UserError if another engine uses the address ranges of this one, such as the engine whose data folder was copied. */
async function refuseBesideOriginal(dataDir: string, record: EngineRecord, signal: AbortSignal): Promise<void> {
  const { downOfOther, otherEngineInRange } = await import('../engine/engine-network.ts');
  const error = await otherEngineInRange({ ...resolveSettings({ dataDir }, record), dataDir }, signal);
  if (error === undefined) return;
  // The name of the bridge depends on the path, so the bridge may be that of the same engine before its data folder was moved.
  const unknown = `the data folder of that engine, or the former path if ${dataDir} was moved,`;
  throw new UserError(
    `the engine of ${dataDir} cannot start to end its Pods: ${error.overlap}; if ${dataDir} is a copy of a data folder that still exists, ` +
      `nothing of it runs, and you can remove the copy; otherwise first type ${downOfOther(error, unknown)}`,
  );
}

/**
 * Stops an engine whose first start is under way, and removes what this or a killed first start has left. `hadLost`: down() has ended an
 * earlier engine of the folder, whose remains are removed, too. Resolves with whether the start has succeeded meanwhile, so that the engine
 * may have Pods.
 */
async function endFirstStart(
  dataDir: string,
  pid: number | undefined,
  hadLost: boolean,
  say: Say,
  settings: DownSettings,
): Promise<boolean> {
  if (readEngineRecord(dataDir) === undefined && pid === undefined && !hadLost) {
    if (await endLost(dataDir, say, settings.signal)) return false;
    say(`lifepod has never run in ${dataDir}: nothing to do${orOtherFolder(dataDir)}`);
    return false;
  }
  if (pid !== undefined) {
    say(`stopping the engine, which has not become ready (PID ${pid})`);
    const released = untilReleasedBy(dataDir, pid, settings.signal);
    sendSignal(pid, 'SIGTERM');
    await released;
    // The engine may have become ready before it received the signal.
    if (settledRecord(dataDir) !== undefined) return true;
  }
  if (existsSync(dataDir)) {
    const lock = lockDataDir(dataDir, 'down');
    try {
      await clearFirstStart(dataDir, nodePlatform('warn'));
      if (hadLost) await clearMachine(dataDir, nodePlatform('warn'), settings.signal);
    } finally {
      lock.release();
    }
  } else if (hadLost) await clearMachine(dataDir, nodePlatform('warn'), settings.signal);
  say(nothingLeft(dataDir, hadLost));
  return false;
}

/** Like down() for a stopped engine, but does nothing if the engine has Pods, or if its store cannot be read. */
export async function downWithoutPods(dataDir: string, say: Say): Promise<void> {
  const turn = await takeTurn(dataDir, say, new AbortController().signal);
  try {
    await turn.own();
    if (await hasPods(dataDir).catch(() => true)) return;
  } finally {
    turn.release();
  }
  await down(dataDir, say);
}

/**
 * Resolves with whether a stopped engine has Pods in its store, or in the folder `pods` of running Pods. The caller must have a turn of its
 * own (Turn.own()).
 */
async function hasPods(dataDir: string): Promise<boolean> {
  const lock = lockDataDir(dataDir, 'down');
  try {
    if (hasPodFolders(dataDir)) return true;
    const store = await openLmdbStore({ directory: join(dataDir, 'store'), log: nodePlatform('error').log });
    try {
      return (await store.range({ prefix: resourcePrefix('', 'pods'), limit: 1 })).items.length > 0;
    } finally {
      await store.close();
    }
  } finally {
    lock.release();
  }
}

/** Like hasPods(), but resolves with the error if no Pod runs, and a full disk prevents opening the store. */
const hasPodsUnlessFull = (dataDir: string): Promise<boolean | StorageFullError> =>
  hasPods(dataDir).catch((error: unknown) => {
    if (error instanceof StorageFullError) return error;
    throw error;
  });

/**
 * Removes the sandboxes and containers that the engine left in the machine's own runtime. Never rejects: resolves with the message of an
 * error, or with undefined if everything has been removed.
 */
async function clearRuntime(dataDir: string, endpoint: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const runtime = await connectOwnRuntime(endpoint, dataDir, nodePlatform('error'));
    try {
      await removeRest(runtime, AbortSignal.any([signal, AbortSignal.timeout(CONTAINERS_END_MILLIS)]));
      return undefined;
    } finally {
      await runtime.close();
    }
  } catch (error) {
    return (error as Error).message;
  }
}
