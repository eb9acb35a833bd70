/**
 * What waits for clients that read slower than the server writes: counted for all answers together.
 *
 * Invariant: beyond the budget the clients for which most waits are cut, one after another. Objects that wait for several
 * watchers count once: they and their text are shared.
 */
import type { ServerResponse } from 'node:http';
import type { Log, Timer, Timers } from '../../platform/platform.ts';
import { drained } from './exchange.ts';

/** What may wait for all clients together. */
const BUDGET_BYTES = 64 * 1024 * 1024;
/** A client that takes nothing of an answer for so long is cut. Source: --request-timeout of v1.33. */
export const STALLED_MILLIS = 60_000;

/** One answer's part of the budget. */
export interface Outgoing {
  /** Writes to the connection. False: no more before ready(). */
  write(data: string | Uint8Array): boolean;
  /** Resolves when the connection takes more, or is closed. `within`: cuts a client that takes nothing for so long. */
  ready(within?: number): Promise<void>;
  /** Ends the answer; what its connection has not taken still counts. */
  end(): void;
  /** Counts an object that is kept until it can be written, and its length. */
  keep(object: object, bytes: number): void;
  /** It need not be kept any more. */
  drop(object: object, bytes: number): void;
}

interface Client extends Outgoing {
  /** What is kept for it, and what its connection has not taken. */
  waiting(): number;
  refresh(): void;
  cut(): void;
}

export interface OutgoingBudget {
  open(response: ServerResponse, path: string): Outgoing;
  /** What waits now. */
  bytes(): number;
}

export function outgoingBudget({ timers, log }: { timers: Timers; log: Log }, limit = BUDGET_BYTES): OutgoingBudget {
  const clients = new Set<Client>();
  /** How many keep the object. */
  const kept = new Map<object, number>();
  let total = 0;

  const check = (): void => {
    if (total <= limit) return;
    for (const client of clients) client.refresh();
    while (total > limit) {
      // What is kept for one client alone is as large as what it asked for.
      const [slowest, ...others] = [...clients]
        .filter((client) => client.waiting() > 0)
        .sort((a, b) => b.waiting() - a.waiting());
      if (slowest === undefined || others.length === 0) return;
      slowest.cut();
    }
  };

  const open = (response: ServerResponse, path: string): Outgoing => {
    const own = new Map<object, number>();
    let ownBytes = 0;
    let buffered = 0;
    const refresh = (): void => {
      const now = response.destroyed ? 0 : response.writableLength;
      total += now - buffered;
      buffered = now;
    };
    const drop = (object: object, bytes: number): void => {
      const times = own.get(object);
      if (times === undefined) return;
      ownBytes -= bytes;
      if (times > 1) own.set(object, times - 1);
      else {
        own.delete(object);
        lengths.delete(object);
      }
      const others = (kept.get(object) ?? 1) - 1;
      if (others > 0) kept.set(object, others);
      else {
        kept.delete(object);
        total -= bytes;
      }
    };
    const lengths = new Map<object, number>();
    const forget = (): void => {
      if (!clients.delete(client)) return;
      total -= buffered;
      buffered = 0;
      for (const [object, times] of [...own]) {
        for (let time = 0; time < times; time++) drop(object, lengths.get(object) ?? 0);
      }
      lengths.clear();
    };
    const client: Client = {
      waiting: () => ownBytes + buffered,
      refresh,
      cut() {
        log.warn('answer cut: the client reads too slowly', { path, waitingBytes: client.waiting() });
        forget();
        response.destroy();
      },
      write(data) {
        if (response.destroyed) return false;
        const more = response.write(data);
        refresh();
        check();
        return more;
      },
      end() {
        if (!response.destroyed) response.end();
        refresh();
      },
      async ready(within) {
        if (response.destroyed || !response.writableNeedDrain) return;
        const timer: Timer | undefined =
          within === undefined ? undefined : timers.at(timers.now() + within, () => client.cut());
        await drained(response);
        timer?.cancel();
        refresh();
      },
      keep(object, bytes) {
        own.set(object, (own.get(object) ?? 0) + 1);
        lengths.set(object, bytes);
        ownBytes += bytes;
        const others = kept.get(object) ?? 0;
        kept.set(object, others + 1);
        if (others === 0) total += bytes;
        check();
      },
      drop,
    };
    clients.add(client);
    response.once('close', forget);
    return client;
  };
  return { open, bytes: () => total };
}
