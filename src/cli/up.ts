/** `lifepod up`: runs the engine in this process. The process is in the foreground, or startDetached() has started it in the background. */

import { setFlagsFromString } from 'node:v8';
import { forgetOwner } from '../engine/data-folder/lock-line.ts';
import type { Engine } from '../engine/engine.ts';
import type { UpOptions } from '../engine/settings.ts';
import { gitCommit, LIFEPOD_VERSION, SERVED_VERSION } from '../engine/version.ts';
import { UserError } from '../platform/files.ts';
import { isJournal } from '../platform/log/journal.ts';
import { createLog, nodePlatform } from '../platform/node-js.ts';
import type { Log, Platform } from '../platform/platform.ts';
import { nameProcess } from '../platform/processes.ts';
import { failureText } from './failures.ts';
import { hintsFor } from './hints.ts';
import { printKubeconfig, usableKubeconfig } from './kubeconfig/own-kubeconfig.ts';
import { printError } from './progress/standard-output.ts';
import { serviceReports } from './service/notify.ts';
import { hasService } from './service/units.ts';
import { InterruptedError, SIGNAL_CODES } from './signals.ts';

/** A message from an engine in the background to the process that started it. */
export type StartReport = { ready: ReadyEngine } | { error: string } | { waiting: string };

export interface ReadyEngine {
  server: string;
  nodeName: string;
  startMillis: number;
  /** Sentences about what may keep Pods from working on this machine. */
  warnings: readonly string[];
}

/** The signal with which `lifepod shutdown-node` makes the engine end the Pods. By convention, SIGPWR reports a power failure. */
export const SHUT_DOWN_NODE = 'SIGPWR';

/** The umask of services of systemd. */
const UMASK = 0o022;

/**
 * A heap that grows in steps of 70%, and the small young generation that bin/lifepod sets, save memory: with the defaults of Node.js, an
 * engine with 10 Pods takes some 30 MB more. With half of the young generation and steps of 20%, garbage collection takes a quarter of the
 * time of the API server under load. On the command line, this flag would make V8 reject the compiled code of the modules of Node.js, which
 * takes 30 ms of each command.
 */
const setHeapGrowth = (): void => setFlagsFromString('--heap-growing-percent=70');

function prepareProcess(): void {
  // Write errors, for example on a full disk, must not end the engine.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  nameProcess('lifepod');
  // containerd inherits the umask. With a stricter one, only root could read the root folders of containers. Files that are private to root
  // are created with a mode of their own.
  process.umask(UMASK);
}

/**
 * Runs the engine. Ends the process when the engine has stopped after SIGTERM, SIGINT or a shutdown of the node. With --shutdown-on-stop,
 * SIGTERM and SIGINT shut down the node of a started engine. A second SIGTERM or SIGINT ends the process immediately. If the engine does
 * not start, reports that to the process that waits for the engine, or rejects if there is none.
 */
export async function up(options: UpOptions): Promise<void> {
  prepareProcess();
  const stopping = new AbortController();
  const shutdown = Promise.withResolvers<void>();
  let isStarted = false;
  let signals = 0;
  let end: EngineStop = 'pods-run';
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (signals++ > 0) process.exit(SIGNAL_CODES[name]);
      if (isStarted && options.shutdownOnStop === true) shutdown.resolve();
      else stopping.abort(new InterruptedError(`stopped by ${name}`, name));
    });
  }
  process.on(SHUT_DOWN_NODE, () => shutdown.resolve());
  const isForeground = process.send === undefined;
  const { platform, notices } = outputOf(options, isForeground);
  // This call must precede the start of any other program (see notify.ts).
  const service = serviceReports(process.env, platform.log);
  // In the foreground, a start that is refused prints one sentence only.
  const locked = (): void => (isForeground ? undefined : logStart(platform.log, options.dataDir));
  const { startEngine, refuseLost, mayRunPods, withRemains } = await loadEngine();
  // V8 also rejects compiled code that is loaded after this call.
  setHeapGrowth();
  let engine: Engine;
  try {
    const ending = (isEnding: boolean): void => {
      end = isEnding ? 'pods-ended' : 'pods-run';
    };
    const reports = { waiting: reportWaiting(notices), listening: service.listening, locked, ending };
    // startDetached() has checked the same for an engine in the background.
    if (isForeground) await refuseLost(options.dataDir, platform.timers);
    engine = await startEngine(options, platform, stopping.signal, reports);
  } catch (error) {
    // After an abort, `error` only shows which step was interrupted.
    const failure: unknown = stopping.signal.aborted ? stopping.signal.reason : error;
    // `lifepod down`, which has ended the Pods, also removes the rest.
    if (isForeground) throw end === 'pods-run' ? withRemains(failure, options.dataDir) : failure;
    await report({ error: failureText(failure) });
    process.exitCode = 1;
    return;
  }
  isStarted = true;
  const failed = (what: string) => (error: unknown) => platform.log.error(what, { error: String(error) });
  void shutdown.promise
    .then(() => engine.shutDownNode())
    .catch(failed('shutting down the node failed'))
    .then(() => {
      end = 'node-shut-down';
      stopping.abort(new UserError('the machine is shutting down'));
    });
  // systemd must know that the service has started before a program reads the line about the ready engine.
  await service.notified();
  const ready = readyEngine(engine);
  if (isForeground) printReady(options.dataDir, ready, notices);
  else await report({ ready });
  await engine.stopped;
  if (end === 'pods-run' && !mayRunPods(options.dataDir)) end = 'no-pods';
  notices.say(stopText(end, options.dataDir, process.env));
  // The process holds the lock on the data folder, for which other commands wait. A remaining timer must not delay them.
  forgetOwner(options.dataDir);
  process.exit();
}

/** Call this when the data folder is locked: a start that a running engine prevents must not appear in the log of that engine. */
const logStart = (log: Log, dataDir: string): void =>
  log.info('lifepod starts', { version: SERVED_VERSION, commit: gitCommit(), dataDir });

/**
 * Loads the modules of the engine here, so that commands that import this file start faster. Also loads the module that is needed when the
 * engine stops, because another version may have replaced the files by then.
 */
async function loadEngine() {
  const [{ startEngine }, { refuseLost }, { mayRunPods }, { withRemains }] = await Promise.all([
    import('../engine/engine.ts'),
    import('../engine/data-folder/lost-folder.ts'),
    import('./service/not-running.ts'),
    import('./detached/interrupted-start.ts'),
  ]);
  return { startEngine, refuseLost, mayRunPods, withRemains };
}

const readyEngine = ({ server, settings, warnings }: Engine): ReadyEngine => ({
  server,
  nodeName: settings.nodeName,
  startMillis: Math.round(process.uptime() * 1000),
  warnings,
});

/**
 * Returns the platform, and functions that report sentences whatever the log level is: to the log if it is in JSON, which is the default in
 * the background, else to standard error.
 */
export function outputOf(
  { logLevel, logFormat }: UpOptions,
  isForeground: boolean,
  logOf = createLog,
): { platform: Platform; notices: Notices } {
  const format = logFormat ?? (isForeground ? 'text' : 'json');
  const platform = nodePlatform(logLevel, format);
  return { platform, notices: format === 'json' ? loggedNotices(logOf({ level: 'info', format })) : PRINTED_NOTICES };
}

interface Notices {
  say(line: string): void;
  warn(line: string): void;
}

const PRINTED_NOTICES: Notices = {
  say: printError,
  warn: (line) => printError(`warning: ${line}`),
};

/** Reports sentences as log entries, so that a program can read all of standard error as JSON. */
const loggedNotices = ({ info, warn }: Log): Notices => ({ say: (line) => info(line), warn: (line) => warn(line) });

export type EngineStop = 'pods-run' | 'no-pods' | 'pods-ended' | 'node-shut-down';

export function stopText(
  end: EngineStop,
  dataDir: string,
  env: NodeJS.ProcessEnv,
  isService = hasService(dataDir),
): string {
  const { engine, asRoot, reinstall } = hintsFor({ dataDir }, env);
  const start = isService ? asRoot('systemctl start lifepod') : engine('up');
  if (end === 'pods-ended') return 'lifepod has stopped';
  if (end === 'node-shut-down')
    return `lifepod has shut down the node and stopped: '${start}' starts it again${reinstall}`;
  if (end === 'no-pods')
    return `lifepod has stopped, and no Pods run: '${start}' starts it again, and '${engine('down')}' removes its network and DNS${reinstall}`;
  return `lifepod has stopped, and Pods continue to run: '${start}' manages them again, and '${engine('down')}' ends them${reinstall}`;
}

/** Sends the message to the process that started this one, and disconnects from that process, so that it can exit. */
function report(message: StartReport): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, undefined, {}, () => {
      if (process.connected) process.disconnect();
      resolve();
    });
  });
}

const reportWaiting =
  (notices: Notices) =>
  (why: string): void => {
    if (process.send === undefined) notices.say(waitingText(why));
    // The process that started this one may have been killed, which must not end the engine.
    else process.send({ waiting: why } satisfies StartReport, undefined, {}, () => undefined);
  };

const waitingText = (why: string): string => `lifepod is waiting for the node to be ready: ${why}`;

export const printWaiting = (why: string): void => PRINTED_NOTICES.say(waitingText(why));

export const readyText = ({ server, nodeName, startMillis }: ReadyEngine): string =>
  `lifepod ${LIFEPOD_VERSION} is ready after ${(startMillis / 1000).toFixed(1)} s: ${server}, node ${nodeName}`;

/**
 * Prints a message to standard error, and a shell command that sets KUBECONFIG to standard output. `isLogged`: standard output is the
 * journal. A user who reads the journal may need sudo and another kubeconfig, so the message names the command that prints the shell
 * command.
 */
export function printReady(
  dataDir: string,
  ready: ReadyEngine,
  { say, warn } = PRINTED_NOTICES,
  isLogged = isJournal(1, process.env),
): void {
  say(readyText(ready));
  for (const warning of ready.warnings) warn(warning);
  if (isLogged) {
    const { engine } = hintsFor({ dataDir }, process.env, undefined, true);
    say(`'${engine('kubeconfig')}' prints the command that sets KUBECONFIG`);
  } else printKubeconfig(usableKubeconfig(dataDir), say);
}
