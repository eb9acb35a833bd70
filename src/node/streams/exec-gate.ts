/**
 * Limits how many commands start at the same time: those of probes and hooks before those of clients, each in the order of the
 * requests.
 *
 * Starting a command costs a runtime about 20 ms of processor time. If more are due than the machine can start, all of them would
 * miss their timeouts and healthy containers would count as unhealthy; with the limit, probes are only delayed. A shim that starts
 * more than about 24 commands at once loses track of those that end, and each then takes many seconds. A command's timeout begins
 * when it starts.
 */
import { availableParallelism } from 'node:os';
import type { Timers } from '../../platform/platform.ts';
import type { ExecPort } from '../handlers/exec.ts';

/**
 * The time after which a command counts as started even if the runtime has not reported it, so that a slow one does not delay
 * others. It is longer for clients, which can wait, so that a busy machine does not start more and more at once.
 */
const STARTING_MILLIS = { handler: 200, client: 1_000 } as const;

/** A handler is a probe or a hook. */
export type Starter = keyof typeof STARTING_MILLIS;

/**
 * Resolves when the caller may start its command, with a function to call as soon as the command has started or ended; further calls
 * of it have no effect. Rejects with the signal's reason on abort.
 */
export type StartGate = (starter: Starter, signal: AbortSignal) => Promise<() => void>;

/** The most commands of clients that start at the same time: all may be for one container, which has one shim. */
const MAX_CLIENTS = 16;

/** At most `limit` commands start at the same time; a command that has started frees its slot. */
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

/** Wraps execSync for probes and hooks so that each command passes the gate first. */
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
