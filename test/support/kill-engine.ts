/** A running engine would restore the resources that a cleanup removes. */
import { lostEngines } from '../../src/engine/data-folder/engine-processes.ts';
import { dataDirOwner, dataDirReleased } from '../../src/platform/files.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { haveEnded, sendSignal } from '../../src/platform/processes.ts';

const DEADLINE_MILLIS = 30_000;

export async function killEngine(dataDir: string): Promise<void> {
  // A test may have deleted the folder while its engine ran.
  const lost = lostEngines(dataDir);
  for (const pid of lost) sendSignal(pid, 'SIGKILL');
  if (!(await haveEnded(lost, DEADLINE_MILLIS, systemTimers()))) throw new Error(`the engine ${lost} does not end`);
  const pid = dataDirOwner(dataDir);
  if (pid === undefined) return;
  const released = dataDirReleased(dataDir, AbortSignal.timeout(DEADLINE_MILLIS));
  process.kill(pid, 'SIGKILL');
  await released;
}
