/**
 * Runs a session: creates the objects of manifests, follows the logs of their Pods, and deletes everything when all Pods and Jobs of the
 * manifests have ended, after Ctrl+C, or if a Pod cannot start. Sets the exit code of this process.
 *
 * This file defines the order of events. The decisions are in plan.ts and session-state.ts, which are pure.
 * Invariants:
 *  1. Nothing is created before all manifests are read and all options are checked.
 *  2. The record of the session is removed only after all its objects are deleted.
 *  3. The session deletes only objects, and stops only engines, that this session or a killed session has created or started.
 */
import { lostText } from '../../engine/data-folder/lost-folder.ts';
import { requireRoot } from '../../engine/machine-checks.ts';
import type { UpOptions } from '../../engine/settings.ts';
import { isSessionEngine, UserError } from '../../platform/files.ts';
import { nodePlatform } from '../../platform/node-js.ts';
import { onAbort, untilAborted } from '../../platform/on-abort.ts';
import { untilEnded } from '../ending/turns.ts';
import { errorLine, failureText } from '../failures.ts';
import { hintsFor } from '../hints.ts';
import { engineStarted } from '../kubeconfig/engine-client.ts';
import { sayWhichEngine } from '../kubeconfig/which-engine.ts';
import { hasColors } from '../logs/copy-log.ts';
import { folderDeleted } from '../lost/deleted-folder.ts';
import { printError as warn } from '../progress/standard-output.ts';
import { terminalLine } from '../progress/terminal-line.ts';
import { SIGNAL_CODES } from '../signals.ts';
import { checkOthers } from './check-others.ts';
import { createObjects, planObjects } from './create-objects.ts';
import { isCut, withoutCut } from './cut/cut-objects.ts';
import { deleteObjects, leftText } from './delete-objects.ts';
import { createFindKind } from './discovery.ts';
import {
  checkOptions,
  type EngineUse,
  engineEnded,
  joinEngine,
  leaveEngine,
  loadDown,
  restartEngine,
} from './engine-use.ts';
import { createInterrupts, handleSignals, type Interrupts, leftBehind, nextDeletes } from './interrupts.ts';
import type { Manifest } from './manifests.ts';
import { createSlowReports, givenUp } from './notices.ts';
import { waitingText } from './plan.ts';
import { createPullReports } from './pulls.ts';
import { checkPaths, readManifests, refuseUrls, UnreadManifestsError } from './read-manifests.ts';
import { createSessionLogs } from './session-logs.ts';
import { isEndedByDown, type OwnRecord, sessionOf } from './session-records.ts';
import { type Failure, firstFailure } from './session-state.ts';
import { type WatchedSession, watchSession } from './watch-session.ts';

export interface SessionOptions extends UpOptions {
  /** The namespace of objects that name none. */
  namespace?: string;
}

interface Session {
  options: SessionOptions;
  interrupts: Interrupts;
  hasPrefix: boolean;
  say(line: string): void;
  /** Prints a line as say() does; nothing in `lifepod run`. */
  detail(line: string): void;
}

const DEFAULT_NAMESPACE = 'default';

export async function upFiles(files: readonly string[], options: SessionOptions): Promise<void> {
  refuseUrls(files, hintsFor({ dataDir: options.dataDir }, process.env));
  // A user who has mistyped a path must not need sudo to read the error. For root, readManifests() reports these errors together with all
  // others, but only after the end of standard input.
  if (process.geteuid?.() !== 0 || files.includes('-')) checkPaths(files);
  await runSession(options, { hasPrefix: true, say: warn, detail: warn }, (stop) => readManifests(files, stop, warn));
}

/** Runs a session with the manifests that `read` returns. Sets the exit code of this process. */
export async function runSession(
  options: SessionOptions,
  output: Pick<Session, 'hasPrefix' | 'say' | 'detail'>,
  read: (stop: AbortSignal) => Promise<Manifest[]>,
): Promise<void> {
  requireRoot();
  const interrupts = createInterrupts((exitCode) => {
    output.say(lostText(options.dataDir) ?? `leaving at once: ${leftBehind(options.dataDir)}`);
    process.exit(exitCode);
  });
  handleSignals(interrupts);
  const session = { options, interrupts, ...output };
  try {
    await untilEnded(options.dataDir, output.say, interrupts.stop);
    await engineStarted(options.dataDir, session.detail, interrupts.stop);
    await checkOptions(options);
    const manifests = await read(interrupts.stop).catch((error: unknown) => refusedFiles(error, session));
    if (manifests === undefined) {
      process.exitCode = interrupts.exitCode() ?? 1;
      return;
    }
    sayWhichEngine(options.dataDir, 'starts');
    const use = await joinEngine(options, session.detail, interrupts.stop);
    process.exitCode = await liveAndLeave(manifests, use, session);
  } catch (error) {
    // After a signal, the error only shows which step was interrupted.
    const code = interrupts.exitCode();
    if (code === undefined) throw error;
    const signal = Object.entries(SIGNAL_CODES).find(([, each]) => each === code)?.[0];
    if (signal !== undefined) output.say(errorLine(`stopped by ${signal}`));
    process.exitCode = code;
  }
}

async function liveAndLeave(manifests: readonly Manifest[], use: EngineUse, session: Session): Promise<number> {
  const { dataDir } = session.options;
  const ending = new AbortController();
  const lost = new AbortController();
  let end: Awaited<ReturnType<typeof engineEnded>> | undefined;
  void engineEnded(dataDir, use.record, ending.signal).then((how) => {
    end = how;
    lost.abort(new UserError(`the engine of ${dataDir} has stopped`));
  }, lost.abort.bind(lost));
  let isDeleted = false;
  void folderDeleted(dataDir, ending.signal).then((text) => {
    isDeleted = true;
    lost.abort(new UserError(text));
  });
  let isClean = false;
  const exitCode = await live(manifests, use, session, lost.signal).then(
    (code) => {
      isClean = true;
      return code;
    },
    async (error: unknown) => {
      session.say(errorLine(failureText(lost.signal.aborted ? lost.signal.reason : error)));
      // The record of the session was in the folder, and no other session may use the folder until `lifepod down` has run.
      if (isDeleted) return 1;
      isClean = end === 'down' || (end === 'failed' && (await cleanUp(use, session)));
      if (!isClean) session.say(nextDeletes(dataDir, 'what the session has created'));
      return 1;
    },
  );
  ending.abort();
  for (const each of use.dead) each.release();
  if (isDeleted) use.record.abandon();
  else if (!(await leaveEngine(dataDir, use.record, isClean, session))) return exitCode === 0 ? 1 : exitCode;
  return exitCode;
}

/** Restarts the engine after it has failed, and deletes the objects of the session. Resolves with whether they are deleted. */
async function cleanUp({ record }: EngineUse, { options, detail, say }: Session): Promise<boolean> {
  try {
    const client = await restartEngine(options.dataDir, record, detail);
    if (client === undefined) return true;
    await deleteObjects(record, { client, platform: nodePlatform('error'), say: detail }, new AbortController().signal);
    return true;
  } catch (error) {
    say(errorLine(failureText(error)));
    return false;
  }
}

/** Resolves with the session's exit code when all its objects are deleted. Rejects if a deletion fails, or with the reason of `lost`. */
async function live(
  manifests: readonly Manifest[],
  { client, record, dead }: EngineUse,
  session: Session,
  lost: AbortSignal,
): Promise<number> {
  const { interrupts, say, detail, options } = session;
  const platform = nodePlatform('error');
  const deletion = { client, platform, say: detail, hurry: interrupts.hurry };
  for (const each of dead) {
    await deleteObjects(each, { ...deletion, begins: () => say(leftText(each)) }, lost);
    each.remove();
  }
  const ending = new AbortController();
  const signal = AbortSignal.any([lost, ending.signal]);
  const findKind = createFindKind(client, signal);
  try {
    const ownedBy = sessionOf.bind(undefined, options.dataDir, record.id);
    const common = { client, sessionOf: ownedBy, signal: interrupts.stop };
    const planning = { ...common, findKind, namespace: options.namespace ?? DEFAULT_NAMESPACE };
    const objects = await unlessStopped(session, planObjects(manifests, planning));
    if (objects === undefined) return interrupts.exitCode() ?? 1;
    const namespaces = [...new Set(objects.flatMap(({ namespace }) => namespace ?? []))];
    const format = { hasPrefix: session.hasPrefix, hasColors: hasColors(), hasNamespace: namespaces.length > 1 };
    const logs = createSessionLogs(client, format, say, signal);
    const failed = failureReports(session);
    const hints = hintsFor({ dataDir: options.dataDir }, process.env);
    const watched = await unlessStopped(
      session,
      watchSession({
        id: record.id,
        client,
        findKind,
        namespaces,
        kinds: new Set(objects.map(({ info }) => info.kind)),
        logs,
        platform,
        say,
        hints,
        failed,
        changed: createPullReports(terminalLine, detail),
        signal,
      }),
    );
    if (watched === undefined) return interrupts.exitCode() ?? 1;
    const isCreated = await createObjects(objects, {
      ...common,
      record,
      created(object, title) {
        detail(`${title} created`);
        watched.created(object);
      },
      warn: (text) => say(`warning: ${text}`),
    }).then(() => true, refused(say, interrupts.stop));
    if (isCreated) detail(waitingText(objects));
    const exitCode = isCreated
      ? await untilOver(watched, { logsEnded: logs.ended, failed, record }, session, lost)
      : (interrupts.exitCode() ?? 1);
    if (record.objects.length > 0 && interrupts.stop.aborted)
      say('deleting the objects; Ctrl+C again ends the Pods at once');
    const isSlow = createSlowReports({ client, hints, say }, interrupts);
    await deleteObjects(record, { ...deletion, isSlow, pods: watched.pods, podsGone: logs.ended }, lost);
    return exitCode ?? interrupts.exitCode() ?? 0;
  } finally {
    ending.abort();
    // After an interruption, requests that create nothing may be under way.
    if (record.objects.length === 0) client.close();
    terminalLine.show('');
  }
}

/** Resolves like `work`, which creates nothing; with undefined after a signal, or if refused() has printed the error. */
const unlessStopped = <T>({ interrupts, say }: Session, work: Promise<T>): Promise<T | undefined> =>
  untilAborted(interrupts.stop, work).catch(refused(say, interrupts.stop));

/**
 * Returns a function that prints a UserError and throws other errors. After `stop` has aborted, it ignores errors, because they only show
 * which step was interrupted.
 */
export const refused =
  (say: (line: string) => void, stop?: AbortSignal) =>
  (error: unknown): undefined => {
    if (stop?.aborted === true) return;
    if (!(error instanceof UserError)) throw error;
    for (const line of error.message.split('\n')) say(`lifepod: ${line}`);
  };

/** If some files are not valid, also prints the errors that the engine finds in the other files. */
async function refusedFiles(error: unknown, { options, interrupts, say }: Session): Promise<undefined> {
  refused(say)(error);
  if (!(error instanceof UnreadManifestsError)) return;
  const checking = { dataDir: options.dataDir, namespace: options.namespace ?? DEFAULT_NAMESPACE };
  const problems = await checkOthers(error.others, checking, interrupts.stop);
  for (const each of problems) say(`lifepod: ${each}`);
}

/**
 * Resolves when the session must end: with 1 if a Pod or Job cannot start, else with the exit code of the first failure, else with 1 if
 * `lifepod down` has ended a Pod, else with undefined. Waits for the logs of Pods that have all ended. Rejects with the reason of `lost`.
 */
async function untilOver(
  watched: WatchedSession,
  { logsEnded, failed, record }: { logsEnded(): Promise<void>; failed(failure: Failure): void; record: OwnRecord },
  { options: { dataDir }, interrupts, say }: Session,
  lost: AbortSignal,
): Promise<number | undefined> {
  watched.complete();
  // If this fails, leaveEngine() reports the error.
  if (isSessionEngine(dataDir)) void loadDown().catch(() => undefined);
  const stopped = new Promise<void>((resolve, reject) => {
    onAbort(interrupts.stop, () => resolve());
    onAbort(lost, () => reject(lost.reason));
  });
  stopped.catch(() => undefined);
  const because = await Promise.race([watched.over, stopped]);
  if (because !== undefined) {
    const start = isSessionEngine(dataDir) ? hintsFor({ dataDir }, process.env).start() : undefined;
    say(`lifepod: ${givenUp(because, start)}`);
    return 1;
  }
  await Promise.race([watched.settled().then(logsEnded), stopped]);
  const state = watched.state();
  const isDown = isCut(state) && isEndedByDown(dataDir, record);
  // A Pod that `lifepod down` ends has not failed, however its program ends after SIGTERM.
  const failure = firstFailure(isDown ? withoutCut(state) : state);
  if (failure !== undefined) failed(failure);
  return failure?.exitCode ?? (isDown ? 1 : undefined);
}

function failureReports({ say, detail }: Session): (failure: Failure) => void {
  const reported = new Set<string>();
  return ({ uid, title, exitCode, condition, cause }) => {
    if (reported.has(uid)) return;
    reported.add(uid);
    if (condition !== undefined) say(`lifepod: ${title} has failed: ${condition}`);
    else if (cause === undefined) detail(`lifepod: ${title} has failed: exit code ${exitCode}`);
    // The logs do not show this cause.
    else say(`lifepod: ${title} has failed: exit code ${exitCode}: ${cause}`);
  };
}
