/** `lifepod shutdown-node`: ends the Pods but keeps their objects, then stops the engine. systemd runs it before the machine shuts down. */

import { copyOfInvoker } from '../engine/certificates/user-kubeconfigs.ts';
import { requireLocalEngine } from '../engine/data-folder/engine-processes.ts';
import { requireRoot } from '../engine/machine-checks.ts';
import { readEngineRecord, type ShutdownOutcome } from '../engine/settings.ts';
import { dataDirOwner, dataDirReleased, UserError } from '../platform/files.ts';
import { sendSignal } from '../platform/processes.ts';
import { startDetached } from './detach.ts';
import { type Hints, hintsFor } from './hints.ts';
import { orOtherFolder } from './kubeconfig/engine-folders.ts';
import { removedCopy } from './kubeconfig/own-kubeconfig.ts';
import { SHUT_DOWN_NODE } from './up.ts';

/** How many engines may try to end the Pods. If the first engine exits before it has ended the Pods, the command starts another one. */
const ENGINES = 2;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

export async function shutDownNode(dataDir: string): Promise<void> {
  requireRoot();
  const hints = hintsFor({ dataDir }, process.env);
  const record = readEngineRecord(dataDir);
  if (record?.state !== 'up' || (record.shutdown !== undefined && dataDirOwner(dataDir) === undefined)) {
    say(`no Pod of ${dataDir} is running: nothing to do${orOtherFolder(dataDir)}`);
    return;
  }
  const copy = copyOfInvoker(dataDir, process.env);
  for (let engine = 1; engine <= ENGINES; engine++) {
    const outcome = await shutDownEngine(dataDir);
    if (outcome !== undefined) {
      printOutcome(outcome, hints);
      const removed = removedCopy(copy);
      if (removed !== undefined) say(removed);
      return;
    }
    say('the engine exited before it had ended all Pods');
  }
  throw new UserError(
    `the engine could not end all Pods, and some may still be running: see its log ${dataDir}/lifepod.log, ` +
      `then run '${hints.engine('shutdown-node')}' again`,
  );
}

/**
 * Makes the running engine, or a new one, end the Pods and stop. Resolves with the outcome; with undefined if the engine exited before it
 * had ended the Pods. Rejects with a UserError if the engine does not start, or runs in a container or on another machine.
 */
async function shutDownEngine(dataDir: string): Promise<ShutdownOutcome | undefined> {
  let pid = dataDirOwner(dataDir);
  if (pid === undefined) {
    say('the engine is not running: starting it to end its Pods gracefully');
    await startDetached({ dataDir, anyPort: true });
    pid = dataDirOwner(dataDir);
  } else requireLocalEngine(dataDir, pid);
  if (pid === undefined) throw new UserError(`the engine stopped unexpectedly: see its log ${dataDir}/lifepod.log`);
  const released = dataDirReleased(dataDir, new AbortController().signal);
  say(`ending the Pods and the engine (PID ${pid})`);
  sendSignal(pid, SHUT_DOWN_NODE);
  await released;
  return readEngineRecord(dataDir)?.shutdown;
}

function printOutcome({ podsLeft }: ShutdownOutcome, hints: Hints): void {
  if (podsLeft.length > 0) say(`these Pods had not ended when their grace period was over: ${podsLeft.join(', ')}`);
  say(
    podsLeft.length > 0
      ? `the other Pods have ended; the next '${hints.engine('up')}' runs those that are still wanted`
      : `the Pods have ended; the next '${hints.engine('up')}' runs those that are still wanted`,
  );
}
