/** Kills an engine that is still running: it would restore what the cleanup removes. */
import { dataDirOwner, dataDirReleased } from '../../src/platform/files.ts';

const DEADLINE_MILLIS = 30_000;

export async function killEngine(dataDir: string): Promise<void> {
  const pid = dataDirOwner(dataDir);
  if (pid === undefined) return;
  const released = dataDirReleased(dataDir, AbortSignal.timeout(DEADLINE_MILLIS));
  process.kill(pid, 'SIGKILL');
  await released;
}
