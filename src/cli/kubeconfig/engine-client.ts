/** Connects a command that may read the data folder to the engine that runs there. */
import { existsSync } from 'node:fs';
import { type HttpClient, type HttpClientOptions, httpClient } from '../../client/http-client.ts';
import { readKubeconfig } from '../../client/kubeconfig.ts';
import { isSilence } from '../../client/silence.ts';
import { visibleOwner } from '../../engine/data-folder/engine-processes.ts';
import { isStarting, untilReleasedBy, untilStarted } from '../../engine/data-folder/lock-line.ts';
import { kubeconfigPath } from '../../engine/settings.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { missingKubeconfig, refusedKubeconfig } from '../hints.ts';
import { patience } from '../progress/slow-answer.ts';
import { printError } from '../progress/standard-output.ts';
import { apiHangs } from '../service/not-running.ts';

type Patience = Pick<HttpClientOptions, 'sent' | 'silenceMillis'>;

interface Waiting extends Patience {
  /** Called with a line if the engine is starting. */
  say?(line: string): void;
  /** An abort ends the wait. */
  signal?: AbortSignal;
}

/** Prints a line such as `waiting until the engine has started` to standard error. */
export const printWait = (line: string): void => printError(`lifepod is ${line}`);

/**
 * Resolves with a client of the engine that has locked the data folder. Waits while the engine is starting, because until then the
 * kubeconfig may be from the previous engine, whose API had another port. Rejects with a UserError if the engine has ended, or if its
 * kubeconfig is missing. See connectEngine() for `rest`.
 */
export async function engineClient(
  dataDir: string,
  { say = printWait, signal, ...rest }: Waiting = {},
): Promise<HttpClient> {
  await engineStarted(dataDir, say, signal);
  const pid = dataDirOwner(dataDir);
  if (pid === undefined) throw new UserError(`the engine of ${dataDir} has stopped`);
  return connectEngine(dataDir, pid, rest);
}

/**
 * Resolves with a client of the running engine `pid`. The client says when the engine does not answer, and its calls fail after a time.
 * `rest` replaces the sentence and the time. Rejects with a UserError if the kubeconfig of the engine is missing.
 */
export async function connectEngine(dataDir: string, pid: number, rest: Patience = {}): Promise<HttpClient> {
  const path = kubeconfigPath(dataDir);
  if (!existsSync(path)) throw new UserError(missingKubeconfig(dataDir, pid));
  const context = await readKubeconfig(path);
  const unreachable = (error: Error): string | undefined =>
    isSilence(error) ? apiHangs(dataDir, pid, context.server) : undefined;
  const refused = (): string => refusedKubeconfig(dataDir, pid);
  return httpClient({ ...context, unreachable, refused, ...patience(), ...rest });
}

/** Waits while an engine is starting in the data folder. Resolves also if that engine ends. */
export async function engineStarted(
  dataDir: string,
  say = printWait,
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  if (!isStarting(dataDir) || dataDirOwner(dataDir) === undefined) return;
  say('waiting until the engine has started');
  await untilStarted(dataDir, signal);
}

/** Resolves when the engine that has the lock of the data folder now has released it; at once if no engine has it. */
export async function untilEngineEnds(dataDir: string, signal: AbortSignal): Promise<void> {
  const pid = visibleOwner(dataDir);
  if (pid !== undefined) await untilReleasedBy(dataDir, pid, signal);
}
