/**
 * Cleans up for a test process that was killed: waits until the pipe from the test closes, then ends the engine of the given data
 * folder and removes the folder, and the given network interface. If the test has cleaned up itself, the folder no longer exists
 * and nothing is done.
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
  // The folder may be a disk of its own.
  await runCommand('umount', ['--lazy', dataDir]);
  if (link !== undefined) await runCommand('ip', ['link', 'delete', link]);
  rmSync(dataDir, { recursive: true, force: true });
}
