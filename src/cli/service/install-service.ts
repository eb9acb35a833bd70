/**
 * `lifepod up --install-service`: starts lifepod, then lets systemd run it, now and after each start of the machine. May be repeated.
 *
 * Reads and writes the units (units.ts), and calls systemctl.
 * Invariants:
 *  1. Nothing is installed before an engine with these options is ready on this machine; its settings are then recorded in the data folder.
 *  2. The Pods keep running while systemd takes over.
 *  3. A unit that lifepod has not written, or that runs an engine on another data folder, remains unchanged.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Node } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { createInformer } from '../../client/informer.ts';
import { clientFromKubeconfig, readKubeconfig } from '../../client/kubeconfig.ts';
import { requireRoot } from '../../engine/machine-checks.ts';
import { shutdownPeriods } from '../../engine/node-settings.ts';
import { kubeconfigPath, readEngineRecord, resolveSettings, type UpOptions } from '../../engine/settings.ts';
import {
  dataDirOwner,
  dataDirReleased,
  isSessionEngine,
  readTextIfPresent,
  UserError,
  writeFileAtomic,
} from '../../platform/files.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { runCommandOk, sendSignal } from '../../platform/processes.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { startDetached } from '../detach.ts';
import { hintsFor } from '../hints.ts';
import { checkOptions } from '../session/engine-use.ts';
import { printReady, type ReadyEngine } from '../up.ts';
import { dataDirOf, ENGINE_UNIT, nodeFolderFor, type Service, UNIT_FOLDER, UNITS, unitsOf } from './units.ts';

/** The engine has been ready before on this machine, so this is long. */
const READY_MILLIS = 300_000;

const LAUNCHER = fileURLToPath(new URL('../../../bin/lifepod', import.meta.url));

export const systemctl = (...args: string[]): Promise<string> => runCommandOk('systemctl', args);

/** Throws a UserError if systemd does not run this machine. Source: sd_booted(3). */
export function requireSystemd(option: string): void {
  if (existsSync('/run/systemd/system')) return;
  throw new UserError(
    `systemd does not run this machine, and ${option} is for systemd: let the machine's own service manager run 'lifepod up' at ` +
      `its start, and 'lifepod shutdown-node' before its shutdown`,
  );
}

/** Throws a UserError if one of the units has not been written by lifepod, or runs an engine on another data folder. */
export function requireOwnUnits(dataDir: string, folder = UNIT_FOLDER): void {
  for (const name of UNITS) {
    const path = join(folder, name);
    const text = readTextIfPresent(path);
    if (text === undefined) continue;
    const owner = dataDirOf(text);
    if (owner === undefined)
      throw new UserError(`${path} was not written by lifepod: remove the unit, or continue to manage it yourself`);
    if (owner !== dataDir)
      throw new UserError(
        `the service ${ENGINE_UNIT} runs the engine of ${owner}: give --data-dir ${owner}, or remove that service ` +
          `with '${hintsFor({ dataDir: owner }, process.env).engine('down --uninstall-service')}'`,
      );
  }
}

/** Writes the units, and returns whether one has changed. */
export function writeUnits(service: Service, folder = UNIT_FOLDER): boolean {
  const units = unitsOf(service);
  const changed = UNITS.filter((name) => readTextIfPresent(join(folder, name)) !== units[name]);
  for (const name of changed) writeFileAtomic(join(folder, name), units[name], 0o644);
  return changed.length > 0;
}

export async function installService(options: UpOptions): Promise<void> {
  requireRoot();
  requireSystemd('--install-service');
  const { dataDir } = options;
  requireOwnUnits(dataDir);
  checkOptions(options);
  const running = dataDirOwner(dataDir);
  if (running !== undefined && isSessionEngine(dataDir))
    throw new UserError(`sessions use the engine of ${dataDir}: wait until they have ended, then repeat this command`);
  let started: ReadyEngine | undefined;
  if (running === undefined) {
    // systemd may be restarting an engine that fails, which would compete for the data folder.
    if (existsSync(join(UNIT_FOLDER, ENGINE_UNIT))) await systemctl('stop', ENGINE_UNIT);
    started = await startDetached(options);
  }
  const record = readEngineRecord(dataDir);
  const grace = shutdownPeriods(resolveSettings({ dataDir }, record)).map(({ seconds }) => seconds);
  const service: Service = {
    launcher: LAUNCHER,
    dataDir,
    graceSeconds: grace.reduce((sum, each) => sum + each, 0),
    ...(options.logLevel === undefined ? {} : { logLevel: options.logLevel }),
  };
  const nodeFolder = nodeFolderFor(LAUNCHER);
  if (nodeFolder !== undefined) service.nodeFolder = nodeFolder;
  const began = performance.now();
  await handOver(dataDir, writeUnits(service));
  await answers(dataDir);
  printReady(dataDir, {
    server: (await readKubeconfig(kubeconfigPath(dataDir))).server,
    nodeName: record?.nodeName ?? '',
    startMillis: performance.now() - began,
    warnings: started?.warnings ?? [],
  });
  process.stderr.write(
    `it runs as the service lifepod, which starts with the machine: 'journalctl -u lifepod' prints its log, and ` +
      `'${hintsFor({ dataDir }, process.env).engine('down --uninstall-service')}' ends and removes it\n`,
  );
}

/** Lets systemd run the engine. If another process runs it, that process stops first. */
async function handOver(dataDir: string, isChanged: boolean): Promise<void> {
  // An interrupt between the two engines would leave the Pods without one.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  try {
    await systemctl('daemon-reload');
    const owner = dataDirOwner(dataDir);
    const ofUnit = Number(await systemctl('show', '--property=MainPID', '--value', ENGINE_UNIT));
    if (owner !== undefined && owner !== ofUnit) {
      sendSignal(owner, 'SIGTERM');
      await dataDirReleased(dataDir, new AbortController().signal);
    } else if (owner !== undefined && isChanged) await systemctl('restart', ENGINE_UNIT);
    await systemctl('enable', '--now', '--quiet', ...UNITS);
  } finally {
    process.off('SIGINT', ignore);
  }
}

/** Waits until the API answers and shows a Node that is Ready. Rejects with a UserError if that takes too long. */
async function answers(dataDir: string): Promise<void> {
  const client = await clientFromKubeconfig(kubeconfigPath(dataDir));
  const waiting = new AbortController();
  const timers = systemTimers();
  const ready = Promise.withResolvers<void>();
  const see = ({ status }: Node): void => {
    if (status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true) ready.resolve();
  };
  const timer = timers.at(timers.now() + READY_MILLIS, () =>
    ready.reject(
      new UserError(
        `the service lifepod is not ready after ${READY_MILLIS / 1000} s: 'journalctl -u lifepod' prints its log`,
      ),
    ),
  );
  try {
    createInformer(
      client.resource<Node>(NODES),
      { log: silentLog, timers, signal: waiting.signal },
      { added: see, updated: see },
    );
    await ready.promise;
  } finally {
    timer.cancel();
    waiting.abort();
  }
}
