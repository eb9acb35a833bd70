/** Waits for the start of the service that runs an engine, for `lifepod down`. Source: systemctl(1). */
import { runCommand } from '../../platform/processes.ts';
import { type ServiceState, serviceState } from './service-state.ts';
import { ENGINE_UNIT } from './units.ts';

/** Joins the start job of the unit: ends when the API listens, with Type=exec when the program runs, or when the start has failed. */
const joinStart = (signal: AbortSignal): Promise<unknown> =>
  runCommand('systemctl', ['start', ENGINE_UNIT], { signal });

/** Does nothing if systemd is not starting the engine. Rejects with the reason of the signal if it aborts. */
export async function serviceStart(
  dataDir: string,
  say: (line: string) => void,
  signal: AbortSignal,
  stateOf: (dataDir: string) => ServiceState | undefined = serviceState,
  join = joinStart,
): Promise<void> {
  const state = stateOf(dataDir);
  if (state !== 'starting' && state !== 'failing') return;
  say('the service lifepod is starting: waiting for it, so that it ends its Pods gracefully');
  await join(signal).catch(() => signal.throwIfAborted());
}
