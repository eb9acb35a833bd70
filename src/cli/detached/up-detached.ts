/**
 * `lifepod up --detach`: starts an engine in the background. May be repeated: if an engine runs with the same options, starts none. If a
 * session has started that engine and no session uses it now, takes it over: later sessions do not stop it.
 */
import { readKubeconfig } from '../../client/kubeconfig.ts';
import { requireLocalEngine, visibleOwner } from '../../engine/data-folder/engine-processes.ts';
import { keepSessionEngine } from '../../engine/data-folder/lock-line.ts';
import { unappliedOptions } from '../../engine/options/different-options.ts';
import { kubeconfigPath, readEngineRecord, type UpOptions } from '../../engine/settings.ts';
import { gitCommit, LIFEPOD_VERSION, shortCommit } from '../../engine/version.ts';
import { dataDirOwner, isSessionEngine, UserError } from '../../platform/files.ts';
import { commandLineOf } from '../../platform/processes.ts';
import { untilEnded } from '../ending/turns.ts';
import { hintsFor, waysToStop } from '../hints.ts';
import { engineStarted, printWait } from '../kubeconfig/engine-client.ts';
import { grantKubeconfig, printKubeconfig } from '../kubeconfig/own-kubeconfig.ts';
import { printError } from '../progress/standard-output.ts';
import { besideService } from '../service/beside-service.ts';
import { replacement } from '../service/replacement.ts';
import { betweenSessions, untilReady } from '../session/engine-use.ts';
import { printReady } from '../up.ts';
import { startUnlessRunning } from './detach.ts';

/** How long the command waits for the node of a running engine to become ready. The limit for a starting engine is the same. */
const PATIENCE_MILLIS = 60_000;

/**
 * Starts the engine, or uses the one that runs, and prints the command that sets KUBECONFIG when the node is ready. While another process
 * is stopping an engine, waits for that first. Rejects with a UserError if the engine does not start, if its node is not ready in time, or
 * if an engine runs with other options, in another version, or is in use by sessions.
 */
export async function upDetached(options: UpOptions): Promise<void> {
  const say = printError;
  await untilEnded(options.dataDir, say, new AbortController().signal);
  const started = await startUnlessRunning(options);
  if ('pid' in started) await useRunning(options, started.pid);
  else printReady(options.dataDir, started);
  const owner = visibleOwner(options.dataDir);
  const beside = owner === undefined ? undefined : besideService(options.dataDir, owner, process.env);
  if (beside !== undefined) say(beside.text);
}

async function useRunning(options: UpOptions, pid: number): Promise<void> {
  const { dataDir } = options;
  requireLocalEngine(dataDir, pid);
  const late = AbortSignal.timeout(PATIENCE_MILLIS);
  await inTime(dataDir, late, engineStarted(dataDir, printWait, late));
  if (dataDirOwner(dataDir) !== pid) return upDetached(options);
  const refusal = isSessionEngine(dataDir)
    ? await betweenSessions(dataDir, (hasSessions) => refusalOfSessionEngine(options, pid, hasSessions))
    : refusalOfRunning(options, pid, process.env);
  if (refusal === 'gone') return upDetached(options);
  // A command that fails prints no success: neither the notes on the kubeconfig nor the command that sets KUBECONFIG.
  if (refusal !== undefined) throw refusal;
  await inTime(dataDir, late, untilReady(dataDir, printWait, late));
  const { server } = await readKubeconfig(kubeconfigPath(dataDir));
  const node = readEngineRecord(dataDir)?.nodeName ?? '';
  printError(`lifepod ${LIFEPOD_VERSION} is already running in ${dataDir} (PID ${pid}): ${server}, node ${node}`);
  const note = otherBuild(dataDir, pid, process.env);
  if (note !== undefined) printError(note);
  printKubeconfig(grantKubeconfig(dataDir));
}

function refusalOfSessionEngine(options: UpOptions, pid: number, hasSessions: boolean): UserError | undefined | 'gone' {
  const { dataDir } = options;
  if (dataDirOwner(dataDir) !== pid) return 'gone';
  const refusal = refusalOfRunning(options, pid, process.env, commandLineOf(pid), hasSessions);
  if (refusal === undefined) keepSessionEngine(dataDir, pid);
  return refusal;
}

/** Settles like `ready`, which rejects when `late` aborts; after such an abort, the error is a UserError about the node instead. */
async function inTime(dataDir: string, late: AbortSignal, ready: Promise<unknown>): Promise<void> {
  try {
    await ready;
  } catch (error) {
    if (!late.aborted) throw error;
    const status = hintsFor({ dataDir }, process.env).engine('status');
    throw new UserError(`the node is not ready after ${PATIENCE_MILLIS / 1000} s: '${status}' shows why`);
  }
}

/**
 * Returns why the command fails although an engine runs; undefined if the engine has the wanted options and version. `args`: the command
 * line of the engine. `hasSessions`: whether sessions use the engine, which then stops with the last session.
 */
export function refusalOfRunning(
  options: UpOptions,
  pid: number,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = commandLineOf(pid),
  hasSessions = false,
): UserError | undefined {
  const { dataDir } = options;
  const { engine } = hintsFor({ dataDir }, env);
  const record = readEngineRecord(dataDir);
  const version = record?.version ?? LIFEPOD_VERSION;
  if (version !== LIFEPOD_VERSION)
    return new UserError(
      `lifepod ${version} is running in ${dataDir} (PID ${pid}): to run ${LIFEPOD_VERSION} instead, type ${replacement(dataDir, pid, env)}`,
    );
  if (hasSessions)
    return new UserError(
      `the engine in ${dataDir} (PID ${pid}) was started by a session, and stops when its last session ends: wait until then, or use it in the ` +
        `meantime with 'eval "$(${engine('kubeconfig')})"'`,
    );
  const unapplied = unappliedOptions(options, record, args);
  if (unapplied.length === 0) return undefined;
  return new UserError(
    `lifepod is already running in ${dataDir} (PID ${pid}) with another value of ${unapplied.join(', ')}, which an engine reads when it ` +
      `starts: omit the option, or stop that engine first: ${waysToStop(dataDir, pid, env)}`,
  );
}

/** Returns the sentence that the running engine is another build of this version; undefined if it is not, or if this is not known. */
export function otherBuild(dataDir: string, pid: number, env: NodeJS.ProcessEnv): string | undefined {
  const [running, own] = [readEngineRecord(dataDir)?.commit, gitCommit()];
  if (running === undefined || own === undefined || running === own) return undefined;
  return (
    `the running engine was built from commit ${shortCommit(running)}, this lifepod from ${shortCommit(own)}: to run this one instead, type ` +
    replacement(dataDir, pid, env)
  );
}
