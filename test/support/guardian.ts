/**
 * Cleans up if a test process was killed. This program waits until its pipe to the test process closes. Then it ends the engine of the data
 * folder in GUARDED_FOLDER, and removes the folder and the network interface in GUARDED_LINK. If the folder no longer exists, the test has
 * cleaned up itself.
 */
import { existsSync, rmSync } from 'node:fs';
import { LAUNCHER } from './launcher.ts';

const { GUARDED_FOLDER: dataDir = '', GUARDED_LINK: link } = process.env;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.stdin.resume();
process.stdin.once('close', () => {
  if (existsSync(dataDir)) void cleanUp();
});

async function cleanUp(): Promise<void> {
  // Every engine of the tests has a guardian, and most guardians never need these modules.
  const { clearMachine } = await import('../../src/engine/leftovers.ts');
  const { nodePlatform } = await import('../../src/platform/node-js.ts');
  const { runCommand } = await import('../../src/platform/processes.ts');
  const { killEngine } = await import('./kill-engine.ts');
  await runCommand(LAUNCHER, ['down', '--data-dir', dataDir], { signal: AbortSignal.timeout(120_000) }).catch(
    () => undefined,
  );
  await killEngine(dataDir);
  await clearMachine(dataDir, nodePlatform('error'), AbortSignal.timeout(30_000));
  // The folder may be the mount point of a separate disk.
  await runCommand('umount', ['--lazy', dataDir]);
  if (link !== undefined) await runCommand('ip', ['link', 'delete', link]);
  rmSync(dataDir, { recursive: true, force: true });
}
