/** `lifepod shutdown-node`: ends the Pods but keeps their objects, then stops the engine. systemd runs it before the machine shuts down. */

import { copyOfInvoker } from '../engine/certificates/user-kubeconfigs.ts';
import { requireLocalEngine } from '../engine/data-folder/engine-processes.ts';
import { untilReleasedBy } from '../engine/data-folder/lock-line.ts';
import { lostText } from '../engine/data-folder/lost-folder.ts';
import { requireRoot } from '../engine/machine-checks.ts';
import { readEngineRecord, type ShutdownOutcome } from '../engine/settings.ts';
import { dataDirOwner, UserError } from '../platform/files.ts';
import { sendSignal } from '../platform/processes.ts';
import { startDetached } from './detached/detach.ts';
import { type Hints, hintsFor } from './hints.ts';
import { orOtherFolder } from './kubeconfig/engine-folders.ts';
import { removedCopy } from './kubeconfig/own-kubeconfig.ts';
import { printError, printLine } from './progress/standard-output.ts';
import { SIGNAL_CODES } from './signals.ts';
import { SHUT_DOWN_NODE } from './up.ts';

const ENGINES = 2;

export async function shutDownNode(dataDir: string): Promise<void> {
  requireRoot();
  const hints = hintsFor({ dataDir }, process.env);
  const record = readEngineRecord(dataDir);
  const lost = record?.state === 'up' ? undefined : lostText(dataDir);
  if (lost !== undefined) throw new UserError(lost);
  if (record?.state !== 'up' || (record.shutdown !== undefined && dataDirOwner(dataDir) === undefined)) {
    printLine(`no Pod of ${dataDir} is running: nothing to do${orOtherFolder(dataDir)}`);
    return;
  }
  const copy = copyOfInvoker(dataDir, process.env);
  for (let engine = 1; engine <= ENGINES; engine++) {
    const outcome = await shutDownEngine(dataDir, hints);
    if (outcome !== undefined) {
      for (const line of outcomeLines(outcome)) printLine(line);
      const removed = removedCopy(copy);
      if (removed !== undefined) printLine(removed);
      return;
    }
    printLine('the engine exited before it had ended all Pods');
  }
  throw new UserError(
    `the engine could not end all Pods, and some may still be running: see its log ${dataDir}/lifepod.log, ` +
      `then run '${hints.engine('shutdown-node')}' again`,
  );
}

export const interruptedText = (hints: Hints): string =>
  `interrupted: the engine continues to end its Pods; '${hints.engine('shutdown-node')}' waits for it again`;

/**
 * Ends the Pods and the engine. Resolves with the outcome that the engine has recorded; with undefined if the engine exited before it had
 * ended the Pods. Rejects with a UserError if the engine does not start, or runs in a container or on another machine.
 */
async function shutDownEngine(dataDir: string, hints: Hints): Promise<ShutdownOutcome | undefined> {
  let pid = dataDirOwner(dataDir);
  if (pid === undefined) {
    printLine('the engine is not running: starting it to end its Pods gracefully');
    await startDetached({ dataDir, anyPort: true });
    pid = dataDirOwner(dataDir);
  } else requireLocalEngine(dataDir, pid);
  if (pid === undefined) throw new UserError(`the engine stopped unexpectedly: see its log ${dataDir}/lifepod.log`);
  const released = untilReleasedBy(dataDir, pid, new AbortController().signal);
  printLine(`ending the Pods and the engine (PID ${pid})`);
  sendSignal(pid, SHUT_DOWN_NODE);
  // While startDetached() waits for an engine that it starts, it handles SIGINT by stopping this engine.
  const interrupt = (): void => {
    printError(`lifepod: ${interruptedText(hints)}`);
    process.exit(SIGNAL_CODES.SIGINT);
  };
  process.once('SIGINT', interrupt);
  await released;
  process.off('SIGINT', interrupt);
  return readEngineRecord(dataDir)?.shutdown;
}

export function outcomeLines({ podsLeft }: ShutdownOutcome): string[] {
  const again = 'static Pods and Pods of controllers run again after the next start of lifepod';
  if (podsLeft.length === 0) return [`the Pods have ended; ${again}`];
  return [`these Pods had not ended when their grace period was over: ${podsLeft.join(', ')}`, again];
}
