/**
 * Starts and stops the engine that sessions share: a session starts an engine if none runs, and the last session stops an engine that a
 * session has started.
 *
 * Writes the records of sessions. Invariants:
 *  1. A session never stops an engine that a user has started or has taken over.
 *  2. A session does not stop an engine with Pods that no session has created, because that would delete these Pods.
 */
import { isNodeReady } from '../../api/core/v1/node/ready.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { createInformer } from '../../client/informer.ts';
import { isSilence } from '../../client/silence.ts';
import { keepSessionEngine } from '../../engine/data-folder/lock-line.ts';
import { refuseLost } from '../../engine/data-folder/lost-folder.ts';
import { checkMachine } from '../../engine/machine-checks.ts';
import { differentOptions } from '../../engine/options/different-options.ts';
import { readEngineRecord, resolveSettings, type UpOptions, usesPrivateContainerd } from '../../engine/settings.ts';
import { settledRecord } from '../../engine/start/first-start.ts';
import { refuseRuntimeChange } from '../../engine/start/runtime-change.ts';
import { refuseUnusableStart } from '../../engine/start/usable-folder.ts';
import { dataDirOwner, ensureDataDir, isSessionEngine, UserError } from '../../platform/files.ts';
import { removeFolders } from '../../platform/folders/folders.ts';
import { nodePlatform, systemTimers } from '../../platform/node-js.ts';
import { onAbort } from '../../platform/on-abort.ts';
import { startUnlessRunning } from '../detached/detach.ts';
import { onlyFinalizersLeft } from '../end-pods.ts';
import { takeTurn } from '../ending/turns.ts';
import { errorLine, failureText } from '../failures.ts';
import { hintsFor, waysToStop } from '../hints.ts';
import { engineClient, engineStarted, untilEngineEnds } from '../kubeconfig/engine-client.ts';
import { kubeconfigNotes, usableKubeconfig } from '../kubeconfig/own-kubeconfig.ts';
import { readyText } from '../up.ts';
import { keptPodsLine } from '../workloads/kept-pods.ts';
import {
  claimDeadRecords,
  createRecord,
  type DeadRecord,
  hasLiveSessions,
  isEndedByDown,
  lockGate,
  type OwnRecord,
  readRecords,
  removeGate,
} from './session-records.ts';

type Say = (line: string) => void;

interface Output {
  say: Say;
  /** Like say(), for lines that `lifepod run` does not print. */
  detail: Say;
}

export interface EngineUse {
  client: HttpClient;
  record: OwnRecord;
  /** The records of killed sessions, whose objects this session must delete. */
  dead: DeadRecord[];
}

/** Rejects with a UserError like otherOptions(), and if the running engine has another value of an option. */
export async function checkOptions(options: UpOptions): Promise<void> {
  const other = await otherOptions(options);
  if (other.length === 0) return;
  const { dataDir } = options;
  const pid = dataDirOwner(dataDir);
  // The engine may have ended since otherOptions() returned.
  if (pid === undefined) return;
  const inUse = `the engine in ${dataDir} is running with another value of ${other.join(', ')}`;
  throw new UserError(`${inUse}: omit the option, or first stop that engine: ${waysToStop(dataDir, pid)}`);
}

/**
 * Resolves with the options, such as `--port`, of which the running engine has another value; none if no engine is running. Rejects with a
 * UserError if an option is not valid, and if Pods prevent a change of the runtime: the caller's advice to stop the engine would not help
 * then.
 */
export async function otherOptions(options: UpOptions): Promise<string[]> {
  checkMachine(() => usesPrivateContainerd(options));
  const isRunning = dataDirOwner(options.dataDir) !== undefined;
  const { dataDir } = options;
  const record = isRunning ? readEngineRecord(dataDir) : settledRecord(dataDir);
  resolveSettings(options, record);
  await refuseRuntimeChange(options, record, nodePlatform('error'));
  return isRunning ? differentOptions(options, record) : [];
}

/**
 * Creates the record of a new session in the data folder, and starts an engine if none is running. Resolves when the node is ready. `stop`
 * interrupts the start. On failure, removes the record, and the remains of a failed start.
 */
export async function joinEngine(options: UpOptions, say: Say, stop: AbortSignal): Promise<EngineUse> {
  const { dataDir } = options;
  await refuseLost(dataDir, systemTimers());
  refuseUnusableStart(options, settledRecord(dataDir));
  const created = ensureDataDir(dataDir);
  const gate = await lockGate(dataDir, stop);
  try {
    const record = createRecord(dataDir);
    const dead = claimDeadRecords(dataDir);
    let isRunning = dataDirOwner(dataDir) !== undefined;
    try {
      isRunning ||= !(await start(options, say, stop));
      const client = isRunning
        ? await untilReady(dataDir, say, stop)
        : await engineClient(dataDir, { say, signal: stop });
      return { client, record, dead };
    } catch (error) {
      for (const each of dead) each.release();
      record.remove();
      if (!isRunning) await clearFailedStart(dataDir, stop.aborted ? say : () => undefined);
      if (readEngineRecord(dataDir) === undefined && dataDirOwner(dataDir) === undefined) {
        removeGate(dataDir);
        removeFolders(created);
      }
      throw error;
    }
  } finally {
    gate.release();
  }
}

/**
 * Waits for the node of an engine that another process has started, and resolves with a client of the engine. Rejects if the engine ends or
 * does not answer, or if `stop` aborts.
 */
export async function untilReady(dataDir: string, say: Say, stop: AbortSignal): Promise<HttpClient> {
  const client = await engineClient(dataDir, { say, signal: stop });
  const ending = new AbortController();
  const signal = AbortSignal.any([stop, ending.signal]);
  const ready = Promise.withResolvers<void>();
  let isReady = false;
  const see = (node: Node): void => {
    isReady ||= isNodeReady(node);
    if (isReady) ready.resolve();
  };
  onAbort(stop, () => ready.reject(stop.reason));
  untilEngineEnds(dataDir, signal).then(
    () => ready.reject(new UserError(`the engine of ${dataDir} has stopped`)),
    () => undefined,
  );
  const failed = (error: unknown): void => {
    if (isSilence(error)) ready.reject(error);
  };
  const options = { ...nodePlatform('error'), signal, failed };
  const { synced } = createInformer(client.resource<Node>(NODES), options, { added: see, updated: see });
  void synced.then(() => isReady || signal.aborted || say('waiting until the node is ready'));
  try {
    await ready.promise;
    return client;
  } catch (error) {
    client.close();
    throw error;
  } finally {
    ending.abort();
  }
}

/** Resolves with false if another process, such as `lifepod up --detach`, has begun to start an engine at the same time. */
async function start(options: UpOptions, say: Say, stop: AbortSignal): Promise<boolean> {
  const ready = await startUnlessRunning({ ...options, forSessions: true }, stop);
  if ('pid' in ready)
    return engineStarted(options.dataDir, say, stop).then(() => checkOptions(options).then(() => false));
  say(readyText(ready));
  for (const warning of ready.warnings) say(`warning: ${warning}`);
  for (const note of kubeconfigNotes(usableKubeconfig(options.dataDir), false)) say(note);
  return true;
}

/** Runs `lifepod down` after a failed start, unless Pods or records of sessions may exist. */
async function clearFailedStart(dataDir: string, say: Say): Promise<void> {
  if (settledRecord(dataDir)?.state !== 'up' || dataDirOwner(dataDir) !== undefined) return;
  const { downWithoutPods } = await import('../down.ts');
  if (readRecords(dataDir).length === 0) await downWithoutPods(dataDir, say);
}

/**
 * Starts the session's engine again after it has ended unexpectedly, so that its Pods can end. Waits while another process ends the engine.
 * Resolves with undefined if that process has deleted the objects of the session.
 */
export async function restartEngine(dataDir: string, record: OwnRecord, say: Say): Promise<HttpClient | undefined> {
  const { signal } = new AbortController();
  const gate = await lockGate(dataDir, signal);
  try {
    const turn = await takeTurn(dataDir, say, signal);
    try {
      await turn.own();
      if (record.isRevoked()) return undefined;
      if (dataDirOwner(dataDir) === undefined) {
        say('the engine is not running: starting it to end its Pods gracefully');
        // The engine may use any port, because another program may have taken the recorded port while no engine was running.
        const ready = await startUnlessRunning({ dataDir, anyPort: true, forSessions: true }, signal);
        if (!('pid' in ready)) say(readyText(ready));
      }
      return await engineClient(dataDir, { say });
    } finally {
      turn.release();
    }
  } finally {
    gate.release();
  }
}

export type EngineEnd = 'down' | 'stopped' | 'failed';

/**
 * Resolves when the engine has ended: with `down` after `lifepod down`, which has deleted everything, with `failed` if a session had
 * started the engine, and otherwise with `stopped`. Does not settle after `signal` has aborted.
 */
export async function engineEnded(dataDir: string, record: OwnRecord, signal: AbortSignal): Promise<EngineEnd> {
  const ofSession = isSessionEngine(dataDir);
  await untilEngineEnds(dataDir, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    return new Promise<never>(() => undefined);
  });
  if (record.isRevoked()) return 'down';
  return ofSession ? 'failed' : 'stopped';
}

/**
 * Loads all modules and files that are needed to stop an engine. A session that may have to stop one calls this early, because its package
 * may be uninstalled or replaced while the session lives.
 */
export async function loadDown(): Promise<typeof import('../down.ts').down> {
  const [{ down }, { loadDefinitions }] = await Promise.all([
    import('../down.ts'),
    import('../../runtime/cri/definitions.ts'),
  ]);
  loadDefinitions();
  return down;
}

/**
 * Ends the session's use of the engine. If all objects of the session are deleted (`isClean`), removes its record, and stops an engine of
 * sessions that no session needs any more. Otherwise keeps the record, so that another process can delete the objects. If this fails,
 * reports the error and resolves with false.
 */
export async function leaveEngine(
  dataDir: string,
  record: OwnRecord,
  isClean: boolean,
  output: Output,
): Promise<boolean> {
  const gate = await lockGate(dataDir, new AbortController().signal);
  try {
    const isDown = isEndedByDown(dataDir, record);
    if (isClean) record.remove();
    else record.abandon();
    if (isDown) output.say("lifepod: 'lifepod down' ends the engine and all its Pods");
    else if (isClean) await stopUnused(dataDir, output);
    return true;
  } catch (error) {
    const { engine, reinstall } = hintsFor({ dataDir }, process.env);
    const next = `'${engine('down')}' stops it${reinstall}`;
    output.say(errorLine(`the session could not stop its engine: ${failureText(error)}; ${next}`));
    return false;
  } finally {
    gate.release();
  }
}

/** Stops a session's engine unless sessions or Pods need it (see onlyFinalizersLeft()). The caller has locked the gate. */
async function stopUnused(dataDir: string, { say, detail }: Output): Promise<void> {
  if (dataDirOwner(dataDir) === undefined || !isSessionEngine(dataDir)) return;
  if (hasLiveSessions(dataDir)) {
    detail('the engine keeps running, because another session uses it');
    return;
  }
  const client = await engineClient(dataDir, { say });
  const { items } = await client.resource<Pod>(PODS).list();
  const others = items.filter((pod) => !onlyFinalizersLeft(pod));
  if (others.length > 0) return say(await keptPodsLine(client, others, hintsFor({ dataDir }, process.env)));
  const down = await loadDown();
  await down(dataDir, detail);
}

/**
 * Calls `use` with whether sessions use the engine. No session joins or leaves meanwhile. When `use` is called, the engine may have ended.
 */
export async function betweenSessions<T>(dataDir: string, use: (hasSessions: boolean) => T): Promise<T> {
  const gate = await lockGate(dataDir, new AbortController().signal);
  try {
    return use(hasLiveSessions(dataDir));
  } finally {
    gate.release();
  }
}

/**
 * Resolves with whether no session uses the engine, which the caller is going to stop. If so, calls keepSessionEngine(): a session that
 * joins meanwhile then does not start the engine again when it has ended.
 */
export const takeOverUnused = (dataDir: string, pid: number): Promise<boolean> =>
  betweenSessions(dataDir, (hasSessions) => {
    if (!hasSessions && dataDirOwner(dataDir) === pid) keepSessionEngine(dataDir, pid);
    return !hasSessions;
  });
