/** `lifepod shutdown-node`: what a machine calls when it shuts down. Ends the Pods, whose objects stay, and then the engine. */

import { requireRoot } from '../engine/machine-checks.ts';
import { readEngineRecord, type ShutdownOutcome } from '../engine/settings.ts';
import { dataDirOwner, dataDirReleased, UserError } from '../platform/files.ts';
import { sendSignal } from '../platform/processes.ts';
import { startDetached } from './detach.ts';
import { SHUT_DOWN_NODE } from './up.ts';

/** An engine that ends before the Pods do is started again so many times. */
const ENGINES = 2;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

export async function shutDownNode(dataDir: string): Promise<void> {
  requireRoot();
  const record = readEngineRecord(dataDir);
  if (record?.state !== 'up' || (record.shutdown !== undefined && dataDirOwner(dataDir) === undefined)) {
    say(`no Pod of ${dataDir} runs: nothing to do`);
    return;
  }
  for (let engine = 1; engine <= ENGINES; engine++) {
    const outcome = await shutDownEngine(dataDir);
    if (outcome !== undefined) {
      tell(outcome);
      return;
    }
    say('the engine ended before it had ended all Pods');
  }
  throw new UserError(
    `the engine could not end all Pods, and they may run still: its log is ${dataDir}/lifepod.log; ` +
      `'lifepod shutdown-node' tries again`,
  );
}

/** undefined: the engine ended without having ended the Pods. */
async function shutDownEngine(dataDir: string): Promise<ShutdownOutcome | undefined> {
  let pid = dataDirOwner(dataDir);
  if (pid === undefined) {
    say('the engine does not run: starting it, to end its Pods gracefully');
    await startDetached({ dataDir, anyPort: true });
    pid = dataDirOwner(dataDir);
  }
  if (pid === undefined) throw new UserError(`the engine has ended by itself: its log is ${dataDir}/lifepod.log`);
  const released = dataDirReleased(dataDir, new AbortController().signal);
  say(`ending the Pods and the engine (PID ${pid})`);
  sendSignal(pid, SHUT_DOWN_NODE);
  await released;
  return readEngineRecord(dataDir)?.shutdown;
}

function tell({ podsLeft }: ShutdownOutcome): void {
  if (podsLeft.length > 0) say(`the time is over for Pods that have not ended: ${podsLeft.join(', ')}`);
  say(
    podsLeft.length > 0
      ? 'the other Pods have ended; the next start of lifepod runs those that are still wanted'
      : 'the Pods have ended; the next start of lifepod runs those that are still wanted',
  );
}
