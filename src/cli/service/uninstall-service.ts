/** `lifepod down --uninstall-service`: ends everything, as `lifepod down` does, then removes the systemd units. May be repeated. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { requireRoot } from '../../engine/machine-checks.ts';
import { readTextIfPresent } from '../../platform/files.ts';
import { CommandError } from '../../platform/processes.ts';
import { hintsFor } from '../hints.ts';
import { printLine } from '../progress/standard-output.ts';
import { systemctl } from './hand-over.ts';
import { requireOwnUnits, requireSystemd } from './install-service.ts';
import { dataDirOf, ENGINE_UNIT, UNIT_FOLDER, UNITS } from './units.ts';

/** Calls `endAll` to end the Pods and the engine. Rejects with a UserError if the units are not those of this engine. */
export async function uninstallService(dataDir: string, endAll: () => Promise<void>): Promise<void> {
  requireRoot();
  requireSystemd('--uninstall-service', dataDir);
  requireOwnUnits(dataDir);
  const installed = UNITS.filter((name) => existsSync(join(UNIT_FOLDER, name)));
  if (installed.includes(ENGINE_UNIT)) {
    const state = await systemctl('show', '--property=ActiveState', '--value', ENGINE_UNIT);
    // systemd may be restarting a failing engine. That engine would compete for the data folder with the engine that ends the Pods.
    if (state.trim() !== 'active') await systemctl('stop', ENGINE_UNIT);
  }
  await endAll();
  if (installed.length === 0) {
    printLine('no service is installed: nothing to remove');
    return;
  }
  await systemctl('disable', '--now', '--quiet', ...installed);
  for (const name of installed) rmSync(join(UNIT_FOLDER, name));
  await systemctl('daemon-reload');
  await systemctl('reset-failed', '--quiet', ENGINE_UNIT).catch((error: unknown) => {
    // reset-failed fails if the service has not failed, because systemd has then already unloaded the removed unit.
    if (!(error instanceof CommandError)) throw error;
  });
  printLine(`the service lifepod is removed; the data folder ${dataDir} remains`);
}

/** Returns the sentence about a service that starts the engine with the machine; undefined if there is none. */
export function serviceLeft(dataDir: string, folder = UNIT_FOLDER): string | undefined {
  const unit = readTextIfPresent(join(folder, ENGINE_UNIT));
  if (unit === undefined || dataDirOf(unit) !== dataDir) return undefined;
  const remedy = hintsFor({ dataDir }, process.env).engine('down --uninstall-service');
  return `the service lifepod starts again with the machine: '${remedy}' removes it`;
}
