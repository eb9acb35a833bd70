/**
 * Counts the bytes of all responses that wait because clients read more slowly than the server writes.
 *
 * Invariant: if the total exceeds the budget, the client with the most waiting bytes is cut, then the next one. An object that
 * waits for several watchers counts once: they share the object and its text.
 */
import type { ServerResponse } from 'node:http';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { Log, Timer, Timers } from '../../../platform/platform.ts';
import { drained } from '../exchange.ts';
import { createHeldObjects, type Holder } from './held-objects.ts';

/** The budget for all clients together. */
const BUDGET_BYTES = 64 * 1024 * 1024;
/** A client that reads nothing of a response for this long is cut. Source: --request-timeout of v1.33. */
export const STALLED_MILLIS = 60_000;

/** One response's share of the budget. It holds objects of the cache until it ends or they are released. */
export interface Outgoing extends Pick<Holder, 'hold' | 'release'> {
  /** Writes to the connection. Returns false if the caller must await ready() before the next write. */
  write(data: string | Uint8Array): boolean;
  /** Resolves when the connection accepts more or is closed. A client that reads nothing for `within` milliseconds is cut. */
  ready(within?: number): Promise<void>;
  /** Ends the response. Its bytes count until the connection has sent them. */
  end(): void;
  /** Counts an object that waits to be written; `bytes` is its length. */
  keep(object: object, bytes: number): void;
  /** Stops counting the object. */
  drop(object: object, bytes: number): void;
}

interface Client extends Outgoing {
  /** The bytes of its objects and of its connection's unsent data. */
  waiting(): number;
  refresh(): void;
  cut(): void;
}

export interface OutgoingBudget {
  open(response: ServerResponse, path: string): Outgoing;
  /** Call it when the cache has dropped the object: from then on only responses keep it alive. */
  dropped(object: KubeObject): void;
  /** The bytes that currently wait. */
  bytes(): number;
}

export function outgoingBudget({ timers, log }: { timers: Timers; log: Log }, limit = BUDGET_BYTES): OutgoingBudget {
  const objects = createHeldObjects();
  const clients = new Set<Client>();
  /** The number of responses that keep the object. */
  const kept = new Map<object, number>();
  let total = 0;

  const check = (): void => {
    if (total <= limit) return;
    for (const client of clients) client.refresh();
    while (total > limit) {
      // A single client may request a list that is larger than the budget.
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
      holder.releaseAll();
      total -= buffered;
      buffered = 0;
      for (const [object, times] of [...own]) {
        for (let time = 0; time < times; time++) drop(object, lengths.get(object) ?? 0);
      }
      lengths.clear();
    };
    const holder = objects.open((heldBytes) => {
      log.warn('response cut: the client reads too slowly', { path, heldBytes });
      forget();
      response.destroy();
    });
    const client: Client = {
      hold: holder.hold,
      release: holder.release,
      waiting: () => ownBytes + buffered,
      refresh,
      cut() {
        log.warn('response cut: the client reads too slowly', { path, waitingBytes: client.waiting() });
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
  return { open, dropped: objects.dropped, bytes: () => total };
}
