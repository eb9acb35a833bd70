/** Ends the Pods of a running engine through its API, then stops the engine, for `lifepod down`. */
import type { HttpClient } from '../../client/http-client.ts';
import { untilReleasedBy } from '../../engine/data-folder/lock-line.ts';
import { connectOwnRuntime, runtimeAnswers } from '../../engine/engine-runtime.ts';
import type { EngineRecord } from '../../engine/settings.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { nodePlatform, systemTimers } from '../../platform/node-js.ts';
import { untilAborted } from '../../platform/on-abort.ts';
import type { Platform } from '../../platform/platform.ts';
import { sendSignal } from '../../platform/processes.ts';
import { containerdPaths } from '../../runtime/containerd/paths.ts';
import { createEndReports, endAllPods, runtimeIdle } from '../end-pods.ts';
import { hintsFor } from '../hints.ts';
import { connectEngine } from '../kubeconfig/engine-client.ts';
import { deleteObjects } from '../session/delete-objects.ts';
import { readRecords, removeRecord } from '../session/session-records.ts';
import { type Asking, askToEnd } from './ask-to-end.ts';
import { retryText, unanswered, untilAnswers } from './first-answer.ts';
import type { Turn } from './turns.ts';
import { withWatchedDeletions } from './watched-deletions.ts';

/**
 * How long to wait for containers whose Pods no longer exist in the API, such as force-deleted ones, and for the removal of sandboxes from
 * the machine's own runtime.
 */
export const CONTAINERS_END_MILLIS = 30_000;

/** How long to wait for the objects of a session other than Pods. Finalizers can keep an object for any time. */
const OBJECTS_END_MILLIS = 30_000;

export type Say = (line: string) => void;

export interface DownSettings {
  /** The grace period of every Pod. Undefined: the Pod's own. */
  gracePeriodSeconds?: number;
  /** An abort interrupts the command, which may be repeated. Pods that are ending continue to end. */
  signal: AbortSignal;
}

export const downAgain = (dataDir: string): string => hintsFor({ dataDir }, process.env).engine('down');

/**
 * Ends the Pods, then stops the engine. Resolves when the engine has exited, and so released its lock on the data folder; `turn` is then
 * one of its own (Turn.own()). Rejects with a UserError if the kubeconfig of the engine is missing, or if the engine exits before its Pods
 * have ended, and with an UnansweredError if the settings' signal aborts before the engine answers.
 */
export async function endEngine(
  dataDir: string,
  record: EngineRecord,
  pid: number,
  turn: Turn,
  say: Say,
  settings: DownSettings,
): Promise<void> {
  const client = await connectEngine(dataDir, pid);
  await turn.share();
  const waiting = new AbortController();
  const released = untilReleasedBy(dataDir, pid, waiting.signal);
  released.catch(() => undefined);
  const ended = new AbortController();
  void released.then(
    () => ended.abort(new UserError(`the engine stopped unexpectedly: run '${downAgain(dataDir)}' again`)),
    () => undefined,
  );
  const signal = AbortSignal.any([ended.signal, settings.signal, waiting.signal]);
  try {
    const failed = (error: Error): void => say(retryText(dataDir, pid, error, downAgain(dataDir)));
    const asking = { timers: systemTimers(), signal, failed, refused: (error: unknown) => ended.abort(error) };
    await untilAnswers(client, asking);
    if (settings.signal.aborted) throw unanswered(dataDir, pid, downAgain(dataDir));
    signal.throwIfAborted();
    await endPods(dataDir, record, pid, say, client, settings.gracePeriodSeconds, asking);
    await turn.own();
    if (dataDirOwner(dataDir) !== pid) return;
    say(`stopping the engine (PID ${pid})`);
    sendSignal(pid, 'SIGTERM');
    await untilAborted(settings.signal, released);
  } finally {
    waiting.abort();
  }
}

async function endPods(
  dataDir: string,
  record: EngineRecord,
  pid: number,
  say: Say,
  client: HttpClient,
  gracePeriodSeconds: number | undefined,
  asking: Asking,
): Promise<void> {
  const { signal } = asking;
  const platform = nodePlatform('error');
  const reports = createEndReports(record.nodeName, say, platform.timers.now());
  const deletion = { client, platform, say, limitMillis: OBJECTS_END_MILLIS, gracePeriodSeconds };
  // The engine must still run, because its controllers delete the dependents. If the objects of sessions remained, the controllers would
  // create their Pods again after the next start.
  const deleteSessions = async (): Promise<void> => {
    for (const session of readRecords(dataDir)) {
      await deleteObjects(session, deletion, signal);
      removeRecord(dataDir, session.id);
    }
  };
  if (readRecords(dataDir).length > 0)
    await withWatchedDeletions({ client, platform, say, reports, gracePeriodSeconds }, signal, deleteSessions);
  await askToEnd(client, pid, gracePeriodSeconds, asking);
  await endAllPods(client, platform, record.nodeName, say, signal, { gracePeriodSeconds, reports });
  await endContainers(dataDir, record.containerRuntimeEndpoint, platform, say, signal);
}

async function endContainers(
  dataDir: string,
  runtimeEndpoint: string | undefined,
  platform: Platform,
  say: Say,
  signal: AbortSignal,
): Promise<void> {
  const endpoint = runtimeEndpoint ?? `unix://${containerdPaths(dataDir).socket}`;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(CONTAINERS_END_MILLIS)]);
  // The engine may be restarting its own containerd, if that has just been killed.
  if (runtimeEndpoint === undefined) await runtimeAnswers(endpoint, platform.timers, limited);
  signal.throwIfAborted();
  const runtime = await connectOwnRuntime(endpoint, dataDir, platform);
  try {
    await runtimeIdle(runtime, platform.timers, say, limited);
  } catch (error) {
    signal.throwIfAborted();
    say(`some containers have not stopped: ${(error as Error).message}`);
  } finally {
    await runtime.close();
  }
}
