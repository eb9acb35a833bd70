/**
 * Cleans up after a test process that was killed: ends the engine of the data folder in GUARDED_FOLDER, and removes the folder and the
 * network interface in GUARDED_LINK. scratchFolder() has started a shell that starts this program.
 */
import { rmSync } from 'node:fs';
import { clearMachine } from '../../src/engine/leftovers.ts';
import { nodePlatform } from '../../src/platform/node-js.ts';
import { runCommand } from '../../src/platform/processes.ts';
import { killEngine } from './kill-engine.ts';
import { LAUNCHER } from './launcher.ts';

const { GUARDED_FOLDER: dataDir = '', GUARDED_LINK: link } = process.env;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

await runCommand(LAUNCHER, ['down', '--data-dir', dataDir], { signal: AbortSignal.timeout(120_000) }).catch(
  () => undefined,
);
await killEngine(dataDir);
await clearMachine(dataDir, nodePlatform('error'), AbortSignal.timeout(30_000));
// The folder may be the mount point of a separate disk.
await runCommand('umount', ['--lazy', dataDir]);
if (link !== undefined) await runCommand('ip', ['link', 'delete', link]);
rmSync(dataDir, { recursive: true, force: true });
