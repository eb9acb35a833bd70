/**
 * `lifepod up --install-service`: starts an engine, then lets systemd run it, now and after each start of the machine. The command may be
 * repeated: a running service is restarted only if its units, the options or the installed lifepod have changed (restart-reason.ts).
 *
 * Reads and writes the units (units.ts), and calls systemctl.
 * Invariants:
 *  1. Nothing is installed before an engine with these options runs on this machine, so that the data folder contains the settings.
 *  2. The Pods keep running while systemd takes over.
 *  3. A unit that lifepod has not written, or that runs an engine on another data folder, remains unchanged.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { isNodeReady } from '../../api/core/v1/node/ready.ts';
import type { Node } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { humanDuration } from '../../api/table.ts';
import { createInformer } from '../../client/informer.ts';
import { clientFromKubeconfig, readKubeconfig } from '../../client/kubeconfig.ts';
import { requireLocalEngine } from '../../engine/data-folder/engine-processes.ts';
import { refuseLost } from '../../engine/data-folder/lost-folder.ts';
import { requireRoot } from '../../engine/machine-checks.ts';
import { shutdownPeriods } from '../../engine/node-settings.ts';
import {
  type EngineRecord,
  kubeconfigPath,
  readEngineRecord,
  resolveSettings,
  type UpOptions,
} from '../../engine/settings.ts';
import { gitCommit, SERVED_VERSION } from '../../engine/version.ts';
import { dataDirOwner, isSessionEngine, readTextIfPresent, UserError, writeFileAtomic } from '../../platform/files.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { findProgram, processAgeMillis, runCommand } from '../../platform/processes.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { startDetached } from '../detached/detach.ts';
import { type Hints, hintsFor } from '../hints.ts';
import { engineStarted } from '../kubeconfig/engine-client.ts';
import { grantKubeconfig, printKubeconfig } from '../kubeconfig/own-kubeconfig.ts';
import { printError } from '../progress/standard-output.ts';
import { checkOptions, otherOptions, takeOverUnused } from '../session/engine-use.ts';
import { printReady, type ReadyEngine } from '../up.ts';
import { handOver, servicePid, systemctl } from './hand-over.ts';
import { journalCommand } from './not-running.ts';
import { type EngineVersion, restartReason } from './restart-reason.ts';
import { serviceState } from './service-state.ts';
import { dataDirOf, ENGINE_UNIT, nodeFolderFor, type Service, UNIT_FOLDER, UNITS, unitsOf } from './units.ts';

/** An engine with these options has already been ready, so a long start is probably only slow. */
const READY_MILLIS = 300_000;

const LAUNCHER = fileURLToPath(new URL('../../../bin/lifepod', import.meta.url));

const WITHOUT_SYSTEMD = {
  '--install-service': (engine) =>
    `let the machine's own service manager run '${engine('up')}' at its start, and '${engine('shutdown-node')}' before its shutdown`,
  '--uninstall-service': () => 'omit the option; the rest of the command needs no systemd',
} satisfies Record<string, (engine: Hints['engine']) => string>;

/** Throws a UserError if systemd does not run this machine. Source: sd_booted(3). */
export function requireSystemd(
  option: keyof typeof WITHOUT_SYSTEMD,
  dataDir: string,
  folder = '/run/systemd/system',
): void {
  if (existsSync(folder)) return;
  const advice = WITHOUT_SYSTEMD[option](hintsFor({ dataDir }, process.env, undefined, false).engine);
  throw new UserError(`systemd does not run this machine, and ${option} is for systemd: ${advice}`);
}

/** Throws a UserError if a unit was not written by lifepod, or runs an engine on another data folder. */
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

/** Writes the units that differ, and returns whether there were any. */
export function writeUnits(service: Service, folder = UNIT_FOLDER): boolean {
  const units = unitsOf(service);
  const changed = UNITS.filter((name) => readTextIfPresent(join(folder, name)) !== units[name]);
  for (const name of changed) writeFileAtomic(join(folder, name), units[name], 0o644);
  return changed.length > 0;
}

export async function installService(options: UpOptions): Promise<void> {
  requireRoot();
  requireSystemd('--install-service', options.dataDir);
  if (options.shutdownOnStop === true)
    throw new UserError(
      '--shutdown-on-stop is not for a service, which ends its Pods when the machine shuts down: omit the option',
    );
  const { dataDir } = options;
  requireOwnUnits(dataDir);
  await refuseLost(dataDir, systemTimers());
  const running = dataDirOwner(dataDir);
  const isService = running !== undefined && running === (await servicePid());
  if (running !== undefined) requireLocalEngine(dataDir, running);
  await engineStarted(dataDir);
  if (!isService) await checkOptions(options);
  const changed = isService ? await otherOptions(options) : [];
  if (running !== undefined && isSessionEngine(dataDir) && !(await takeOverUnused(dataDir, running)))
    throw new UserError(`sessions use the engine of ${dataDir}: wait until they have ended, then repeat this command`);
  const version = isService ? await runningVersion(dataDir) : undefined;
  const started = running === undefined || changed.length > 0 ? await startOutsideService(options) : undefined;
  const record = readEngineRecord(dataDir);
  const began = performance.now();
  const units = writeUnits(serviceOf(options, record));
  const installed = { gitVersion: SERVED_VERSION, gitCommit: gitCommit() ?? '' };
  const reason = isService ? restartReason({ units, options: changed, running: version, installed }) : undefined;
  await handOver(dataDir, reason !== undefined);
  await serviceStarted();
  await answers(dataDir);
  if (isService && reason === undefined) {
    const time = humanDuration(processAgeMillis(running));
    printError(
      `the service lifepod was already installed, and continues to run (PID ${running}, for ${time}): nothing has changed`,
    );
    return printKubeconfig(grantKubeconfig(dataDir));
  }
  if (reason !== undefined) printError(`restarted the service lifepod, because ${reason}; its Pods continue to run`);
  printReady(dataDir, {
    server: (await readKubeconfig(kubeconfigPath(dataDir))).server,
    nodeName: record?.nodeName ?? '',
    startMillis: performance.now() - began,
    warnings: started?.warnings ?? [],
  });
  printError(
    `it runs as the service lifepod, which starts with the machine: '${journalCommand(process.env)}' prints its log, and ` +
      `'${hintsFor({ dataDir }, process.env).engine('down --uninstall-service')}' ends and removes it`,
  );
}

function serviceOf({ dataDir, logLevel, logFormat }: UpOptions, record: EngineRecord | undefined): Service {
  const grace = shutdownPeriods(resolveSettings({ dataDir }, record)).map(({ seconds }) => seconds);
  const nodeFolder = nodeFolderFor(LAUNCHER);
  return {
    launcher: LAUNCHER,
    dataDir,
    graceSeconds: grace.reduce((sum, each) => sum + each, 0),
    ...(logLevel === undefined ? {} : { logLevel }),
    ...(logFormat === undefined ? {} : { logFormat }),
    ...(nodeFolder === undefined ? {} : { nodeFolder }),
    ...(findProgram('systemd-notify') === undefined ? { isSilent: true } : {}),
  };
}

async function runningVersion(dataDir: string): Promise<EngineVersion | undefined> {
  try {
    const client = await clientFromKubeconfig(kubeconfigPath(dataDir));
    return JSON.parse(await text(await client.open('/version', AbortSignal.timeout(READY_MILLIS)))) as EngineVersion;
  } catch {
    return undefined;
  }
}

/**
 * Starts an engine, which records the options in the data folder for the service. Stops the service first, because systemd might be
 * restarting a failing engine, which would compete for the data folder.
 */
async function startOutsideService(options: UpOptions): Promise<ReadyEngine> {
  const isInstalled = existsSync(join(UNIT_FOLDER, ENGINE_UNIT));
  // The folder may be unlocked although the service runs, because systemd is about to restart a failing engine.
  const state = serviceState(options.dataDir);
  const wasRunning = dataDirOwner(options.dataDir) !== undefined || (state !== undefined && state !== 'stopped');
  // SIGINT must not end this process here. startDetached() adds a handler that interrupts the start.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  try {
    if (isInstalled) await systemctl('stop', ENGINE_UNIT);
    return await startDetached(options);
  } catch (error) {
    if (wasRunning) {
      await systemctl('start', '--no-block', ENGINE_UNIT);
      printError('this start has failed: the service lifepod is started again with its former options');
    }
    throw error;
  } finally {
    process.off('SIGINT', ignore);
  }
}

const notReady = (): UserError =>
  new UserError(
    `the service lifepod is not ready after ${READY_MILLIS / 1000} s: '${journalCommand(process.env)}' prints its log`,
  );

/** Waits until systemd has started both units. Rejects with a UserError if the engine fails or does not start within READY_MILLIS. */
async function serviceStarted(): Promise<void> {
  const signal = AbortSignal.timeout(READY_MILLIS);
  const { code } = await runCommand('systemctl', ['start', ...UNITS], { signal }).catch((error: unknown) => {
    throw signal.aborted ? notReady() : error;
  });
  if (code !== 0)
    throw new UserError(`the service lifepod has failed to start: '${journalCommand(process.env)}' prints its log`);
}

async function answers(dataDir: string): Promise<void> {
  const client = await clientFromKubeconfig(kubeconfigPath(dataDir));
  const waiting = new AbortController();
  const timers = systemTimers();
  const ready = Promise.withResolvers<void>();
  const see = (node: Node): void => {
    if (isNodeReady(node)) ready.resolve();
  };
  const timer = timers.at(timers.now() + READY_MILLIS, () => ready.reject(notReady()));
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
