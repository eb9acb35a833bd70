/** Kills the engine of a data folder before a cleanup, because a running engine would restore the resources that the cleanup removes. */
import { dataDirOwner, dataDirReleased } from '../../src/platform/files.ts';

const DEADLINE_MILLIS = 30_000;

export async function killEngine(dataDir: string): Promise<void> {
  const pid = dataDirOwner(dataDir);
  if (pid === undefined) return;
  const released = dataDirReleased(dataDir, AbortSignal.timeout(DEADLINE_MILLIS));
  process.kill(pid, 'SIGKILL');
  await released;
}
