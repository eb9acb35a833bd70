/** Defines the command `lifepod down`: its options, and its interruption by Ctrl+C. */
import { copyOfInvoker } from '../engine/certificates/user-kubeconfigs.ts';
import { visibleOwner } from '../engine/data-folder/engine-processes.ts';
import { isStopping } from '../engine/data-folder/lock-line.ts';
import { UserError } from '../platform/files.ts';
import { UnansweredError } from './ending/first-answer.ts';
import { hintsFor } from './hints.ts';
import { removedCopy } from './kubeconfig/own-kubeconfig.ts';
import { sayWhichEngine } from './kubeconfig/which-engine.ts';
import { printError, printLine } from './progress/standard-output.ts';
import { mayRunPods } from './service/not-running.ts';
import { SIGNAL_CODES } from './signals.ts';

export interface DownOptions {
  dataDir: string;
  now?: boolean;
  gracePeriod?: number;
  uninstallService?: boolean;
}

/** The grace period that --now sets. Source: kubectl delete --now. */
const NOW_SECONDS = 1;
/**
 * Returns the grace period in seconds that the options ask for; undefined if each Pod keeps its own. Turns 0 into 1, as `kubectl delete`
 * does without --force, because defer containers run only in Pods that have a grace period.
 */
export const gracePeriodOf = ({ now, gracePeriod }: DownOptions): number | undefined =>
  now === true ? NOW_SECONDS : gracePeriod === undefined ? undefined : Math.max(NOW_SECONDS, gracePeriod);

/** Returns the command to repeat after an interruption, without the name of the program. */
export const sameCommand = ({ uninstallService }: DownOptions): string =>
  uninstallService === true ? 'down --uninstall-service' : 'down';

/** Returns a phrase about what still runs after an interruption. The command has already stopped an engine that it had started itself. */
export function stateText(dataDir: string, podsRun = mayRunPods): string {
  if (visibleOwner(dataDir) !== undefined)
    return isStopping(dataDir) ? 'the engine is stopping' : 'Pods that are ending continue to end';
  return podsRun(dataDir) ? 'no engine is running, but Pods may be' : 'no engine is running';
}

/** Runs `lifepod down`. Ctrl+C and SIGTERM interrupt the command; after a second signal, the process exits at once. */
export async function downCommand(options: DownOptions): Promise<void> {
  const interrupted = new AbortController();
  let exitCode: number | undefined;
  for (const [name, code] of Object.entries(SIGNAL_CODES)) {
    process.on(name, () => {
      if (exitCode !== undefined) process.exit(exitCode);
      exitCode = code;
      interrupted.abort(new UserError(`interrupted by ${name}`));
    });
  }
  const { dataDir } = options;
  try {
    const { down } = await import('./down.ts');
    const { serviceLeft, uninstallService } = await import('./service/uninstall-service.ts');
    const endAll = (): Promise<void> =>
      down(dataDir, undefined, { gracePeriodSeconds: gracePeriodOf(options), signal: interrupted.signal });
    const copy = copyOfInvoker(dataDir, process.env);
    if (options.uninstallService === true) await uninstallService(dataDir, endAll);
    else {
      sayWhichEngine(dataDir);
      await endAll();
    }
    for (const line of [removedCopy(copy), serviceLeft(dataDir)]) if (line !== undefined) printLine(line);
  } catch (error) {
    if (exitCode === undefined) throw error;
    const again = hintsFor({ dataDir }, process.env).engine(sameCommand(options));
    const how =
      error instanceof UnansweredError && visibleOwner(dataDir) !== undefined
        ? error.message
        : `${stateText(dataDir)}; type '${again}' again`;
    printError(`lifepod: interrupted: ${how}`);
    // The connections of the interrupted step would keep the process alive.
    process.exit(exitCode);
  }
}
