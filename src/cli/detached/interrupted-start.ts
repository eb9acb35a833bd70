/** Adds to the error of an interrupted start what remains of an engine that has run before. */
import { hasNetwork } from '../../engine/leftovers.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { dataDirOwner } from '../../platform/files.ts';
import { mayRunPods } from '../service/not-running.ts';
import { InterruptedError } from '../signals.ts';
import { stopText } from '../up.ts';

/** Returns `failure` itself if it is not an InterruptedError, if nothing remains, or if another engine runs in the folder. */
export function withRemains(failure: unknown, dataDir: string, env = process.env): unknown {
  if (!(failure instanceof InterruptedError)) return failure;
  try {
    const hasRun = readEngineRecord(dataDir)?.state === 'up';
    if (!hasRun || ![undefined, process.pid].includes(dataDirOwner(dataDir))) return failure;
    const podsRun = mayRunPods(dataDir);
    return podsRun || hasNetwork(dataDir) ? interruptedStart(failure, podsRun, dataDir, env) : failure;
  } catch {
    // For example, another command has locked the folder.
    return failure;
  }
}

export function interruptedStart(
  error: InterruptedError,
  podsRun: boolean,
  dataDir: string,
  env: NodeJS.ProcessEnv,
): InterruptedError {
  const rest = stopText(podsRun ? 'pods-run' : 'no-pods', dataDir, env).replace(/^lifepod has stopped, and /, '');
  return new InterruptedError(`${error.message}; ${rest}`, error.signal);
}
