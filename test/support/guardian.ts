/**
 * Cleans up if a test process was killed. This program waits until its pipe to the test process closes. Then it ends the engine of the
 * data folder in GUARDED_FOLDER, and removes the folder and the network interface in GUARDED_LINK. If the folder no longer exists, the
 * test has cleaned up itself, and this program does nothing.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { clearMachine } from '../../src/engine/leftovers.ts';
import { nodePlatform } from '../../src/platform/node-js.ts';
import { runCommand } from '../../src/platform/processes.ts';
import { killEngine } from './kill-engine.ts';

const { GUARDED_FOLDER: dataDir = '', GUARDED_LINK: link } = process.env;
const launcher = join(import.meta.dirname, '../../bin/lifepod');

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.stdin.resume();
process.stdin.once('close', () => {
  if (existsSync(dataDir)) void cleanUp();
});

async function cleanUp(): Promise<void> {
  await runCommand(launcher, ['down', '--data-dir', dataDir], { signal: AbortSignal.timeout(120_000) }).catch(
    () => undefined,
  );
  await killEngine(dataDir);
  await clearMachine(dataDir, nodePlatform('error'), AbortSignal.timeout(30_000));
  // The folder may be the mount point of a separate disk.
  await runCommand('umount', ['--lazy', dataDir]);
  if (link !== undefined) await runCommand('ip', ['link', 'delete', link]);
  rmSync(dataDir, { recursive: true, force: true });
}
