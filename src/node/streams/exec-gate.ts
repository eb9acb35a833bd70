/**
 * Limits how many commands start at the same time. Commands of probes and hooks start before commands of clients; within each of these
 * groups, commands start in the order of the requests.
 *
 * Starting a command costs the runtime about 20 ms of processor time. Without the limit, if more commands were due than the machine can
 * start, all of them would exceed their timeouts, and healthy containers would count as unhealthy. With the limit, probes are only delayed,
 * since a command's timeout begins when the command starts. In addition, a shim that starts more than about 24 commands at the same time
 * fails to notice the ends of some, and each of these then takes many seconds.
 */
import { availableParallelism } from 'node:os';
import type { Timers } from '../../platform/platform.ts';
import type { ExecPort } from '../handlers/exec.ts';

/**
 * After this time, a command counts as started even if the runtime has not reported this, so that a slow start does not delay other
 * commands. The time is longer for clients, which can wait, so that a busy machine does not start more and more commands at the same time.
 */
const STARTING_MILLIS = { handler: 200, client: 1_000 } as const;

/** handler: a probe or a hook. client: a client of the API that uses exec. */
export type Starter = keyof typeof STARTING_MILLIS;

/**
 * Resolves when the caller may start its command, with a function that the caller must call as soon as the command has started or ended.
 * Further calls of this function have no effect. Rejects with the signal's reason on abort.
 */
export type StartGate = (starter: Starter, signal: AbortSignal) => Promise<() => void>;

/** Below the number that a shim can start, since all of these commands may be for one container. */
const MAX_CLIENTS = 16;

/**
 * At most `limit` commands start at the same time. A command occupies a slot until the caller reports its start or end, but no longer than
 * STARTING_MILLIS.
 */
export function createStartGate(timers: Timers, limit = 4 * availableParallelism()): StartGate {
  const starting: Record<Starter, number> = { handler: 0, client: 0 };
  const waiting: Record<Starter, Set<() => void>> = { handler: new Set(), client: new Set() };

  const mayStart = (starter: Starter): boolean =>
    starting.handler + starting.client < limit && (starter === 'handler' || starting.client < MAX_CLIENTS);
  const startNext = (): void => {
    for (const starter of ['handler', 'client'] as const) {
      for (const enter of waiting[starter]) {
        if (!mayStart(starter)) break;
        enter();
      }
    }
  };
  const turn = (starter: Starter, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const left = (): void => {
        waiting[starter].delete(enter);
        signal.removeEventListener('abort', abort);
      };
      const abort = (): void => {
        left();
        reject(signal.reason);
      };
      const enter = (): void => {
        left();
        starting[starter]++;
        resolve();
      };
      waiting[starter].add(enter);
      signal.addEventListener('abort', abort, { once: true });
      startNext();
    });

  return async (starter, signal) => {
    signal.throwIfAborted();
    await turn(starter, signal);
    let counted = true;
    const started = (): void => {
      if (!counted) return;
      counted = false;
      timer.cancel();
      starting[starter]--;
      startNext();
    };
    const timer = timers.at(timers.now() + STARTING_MILLIS[starter], started);
    return started;
  };
}

export function limitStarts(runtime: ExecPort, gate: StartGate): ExecPort {
  return {
    execSync: async (id, command, timeoutMillis, signal) => {
      const ended = await gate('handler', signal);
      try {
        return await runtime.execSync(id, command, timeoutMillis, signal);
      } finally {
        ended();
      }
    },
  };
}
