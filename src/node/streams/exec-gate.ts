/**
 * Lets only so many commands start at the same time: those of probes and hooks before those of clients, each in the order
 * in which they came.
 *
 * Starting a command costs a runtime some 20 ms of processor time. Where more are due than the machine can start, all of
 * them together would miss their timeouts, and containers that are well would count as ill; in turn, they are merely
 * asked less often. A shim that is asked for more than some 24 at once loses track of those that end, and every one of
 * them takes many seconds. A command's own time begins when it starts.
 */
import { availableParallelism } from 'node:os';
import type { Timers } from '../../platform/platform.ts';
import type { ExecPort } from '../handlers/exec.ts';

/**
 * After this a command has started, or its machine is too busy to tell; a slow one must not hold up the others.
 * Clients can wait: for them it is long enough that a busy machine does not start more and more at once.
 */
const STARTING_MILLIS = { handler: 200, client: 1_000 } as const;

/** A handler is a probe or a hook. */
export type Starter = keyof typeof STARTING_MILLIS;

/**
 * Resolves when it is the caller's turn, with what is to be called as soon as the command has started or has ended; it may
 * be called again. Rejects with the signal's reason on abort.
 */
export type StartGate = (starter: Starter, signal: AbortSignal) => Promise<() => void>;

/** Most commands of clients that start at the same time: all may be meant for one container, which has one shim. */
const MAX_CLIENTS = 16;

/** `limit` commands start at once; those that have started sooner make way sooner. */
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

/** Commands of probes and hooks, each in its turn. */
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
