/** Lets systemd run the engine of a data folder. Calls systemctl. */
import { untilReleasedBy } from '../../engine/data-folder/lock-line.ts';
import { dataDirOwner } from '../../platform/files.ts';
import { runCommandOk, sendSignal } from '../../platform/processes.ts';
import { ENGINE_UNIT, UNITS } from './units.ts';

export const systemctl = (...args: string[]): Promise<string> => runCommandOk('systemctl', args);

/** Resolves with the PID of the engine that systemd runs; with 0 if systemd runs none. */
export const servicePid = async (run = systemctl): Promise<number> =>
  Number(await run('show', '--property=MainPID', '--value', ENGINE_UNIT));

/**
 * Lets systemd run the engine, without waiting for its start. First stops an engine that systemd does not run. `mustRestart`: restarts an
 * engine that systemd already runs.
 */
export async function handOver(dataDir: string, mustRestart: boolean, run = systemctl): Promise<void> {
  // An interrupt between the two engines would leave the Pods without one.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  try {
    await run('daemon-reload');
    const owner = dataDirOwner(dataDir);
    if (owner === undefined || owner !== (await servicePid(run))) {
      // systemd may be restarting the service, whose engine fails while the other engine runs. Without this stop, the engine of the service
      // would lock the data folder as soon as the other engine stops.
      await run('stop', ENGINE_UNIT);
      await stopEngine(dataDir);
    } else if (mustRestart) await run('restart', '--no-block', ENGINE_UNIT);
    await run('enable', '--quiet', ...UNITS);
    await run('start', '--no-block', ...UNITS);
  } finally {
    process.off('SIGINT', ignore);
  }
}

async function stopEngine(dataDir: string): Promise<void> {
  const pid = dataDirOwner(dataDir);
  if (pid === undefined) return;
  sendSignal(pid, 'SIGTERM');
  await untilReleasedBy(dataDir, pid, new AbortController().signal);
}
