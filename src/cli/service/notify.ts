/**
 * Reports to systemd that the API of the engine listens, if systemd has started this process as a service of the type notify. Runs the
 * program systemd-notify, because Node.js has no Unix datagram sockets.
 *
 * Invariant: no other program that the engine starts gets the variable NOTIFY_SOCKET. With it, containerd would report its own start and
 * stop as those of the service.
 * Sources: sd_notify(3), systemd-notify(1), systemd.service(5).
 */
import type { Log } from '../../platform/platform.ts';
import { runCommandOk } from '../../platform/processes.ts';

/** The time limit of systemd-notify, which waits until systemd has read the message. */
const ANSWERED_WITHIN_MILLIS = 60_000;

/** Removes NOTIFY_SOCKET from the environment, and returns it; undefined if systemd waits for no message. */
export function takeNotifySocket(env: NodeJS.ProcessEnv): string | undefined {
  const socket = env['NOTIFY_SOCKET'];
  delete env['NOTIFY_SOCKET'];
  return socket === '' ? undefined : socket;
}

/** Reports to systemd that the API listens. Never rejects: logs a failure, because the engine works without the report. */
export async function notifyListening(socket: string, log: Log): Promise<void> {
  try {
    await runCommandOk('systemd-notify', ['--ready', `--pid=${process.pid}`], {
      env: { ...process.env, NOTIFY_SOCKET: socket },
      signal: AbortSignal.timeout(ANSWERED_WITHIN_MILLIS),
    });
  } catch (error) {
    const remedy =
      "systemd shows the service as starting until it is restarted: install systemd-notify, then type 'systemctl restart lifepod'";
    log.warn(`lifepod could not report to systemd that it is ready; ${remedy}`, { error: (error as Error).message });
  }
}

export interface ServiceReports {
  listening(): void;
  /** Resolves when the report has succeeded or failed; at once if none is under way. */
  notified(): Promise<void>;
}

/** Takes NOTIFY_SOCKET from `env`; without this variable, the functions do nothing. Call this before the process starts another program. */
export function serviceReports(env: NodeJS.ProcessEnv, log: Log): ServiceReports {
  const socket = takeNotifySocket(env);
  let notified = Promise.resolve();
  return {
    listening() {
      if (socket !== undefined) notified = notifyListening(socket, log);
    },
    notified: () => notified,
  };
}
