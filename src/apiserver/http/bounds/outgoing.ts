/**
 * Counts the response bytes that wait in the server because clients read more slowly than the server writes.
 *
 * Invariant: while the total exceeds the budget, the connection of the client with the most waiting bytes is closed, unless no other client
 * has waiting bytes. An object that waits for several watches counts once in the total, because they share the object and its text.
 *
 * In HTTP/2, closing the connection of a client resets only the stream of the response.
 */
import type { Writable } from 'node:stream';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { Log, Timers } from '../../../platform/platform.ts';
import { drainedOrClosed } from '../wait-for-drain.ts';
import { createHeldObjects, type HeldObjects, type Holder } from './held-objects.ts';

const BUDGET_BYTES = 64 * 1024 * 1024;
/**
 * How long the server waits for a client to read the waiting bytes of a long body, the last bytes of any response, or the last events of an
 * ended watch. Then the server closes the connection. Source: --request-timeout of v1.33.
 */
export const STALLED_MILLIS = 60_000;

export interface Outgoing extends Pick<Holder, 'hold' | 'release'> {
  readonly isClosed: boolean;
  /** Whether the response is open, and its connection accepts more at once. */
  readonly isReady: boolean;
  /**
   * From now on, writes to `output`, such as the messages of a WebSocket, instead of the body of the response. Call it before the first
   * write.
   */
  redirect(output: Writable): void;
  /** Returns false if the caller must await ready() before the next write, and if the response is closed. */
  write(data: string | Uint8Array): boolean;
  /** Resolves when the connection accepts more or is closed. Closes a connection that accepts no more within `within` milliseconds. */
  ready(within?: number): Promise<void>;
  /** The last bytes count until the connection has sent them. */
  end(data?: string | Uint8Array): void;
  /** Closes the connection, so that the client sees that the response is incomplete. */
  destroy(): void;
  /**
   * Counts `bytes`, the memory of an object that the response needs, until drop() has been called as often as keep(), or the response
   * closes.
   */
  keep(object: object, bytes: number): void;
  /** `bytes` must be the value that was passed to keep(). */
  drop(object: object, bytes: number): void;
}

export interface OutgoingBudget {
  /** `path` is logged if the response is cut. */
  open(response: Writable, path: string): Outgoing;
  /** Must be called when the cache has dropped the object: from then on, only responses keep the object alive. */
  dropped(object: KubeObject): void;
  bytes(): number;
}

export function outgoingBudget({ timers, log }: { timers: Timers; log: Log }, limit = BUDGET_BYTES): OutgoingBudget {
  const objects = createHeldObjects();
  const waiting = new WaitingBytes(limit);
  return {
    open: (response, path) => new Client(response, path, { waiting, objects, timers, log }),
    dropped: objects.dropped,
    bytes: () => waiting.total,
  };
}

class WaitingBytes {
  readonly clients = new Set<Client>();
  readonly #limit: number;
  /** For each kept object: the number of calls of keep() without a matching drop(). */
  readonly #kept = new Map<object, number>();
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get total(): number {
    return this.#total;
  }

  add(bytes: number): void {
    this.#total += bytes;
  }

  keep(object: object, bytes: number): void {
    const others = this.#kept.get(object) ?? 0;
    this.#kept.set(object, others + 1);
    if (others === 0) this.#total += bytes;
  }

  drop(object: object, bytes: number): void {
    const others = (this.#kept.get(object) ?? 1) - 1;
    if (others > 0) {
      this.#kept.set(object, others);
      return;
    }
    this.#kept.delete(object);
    this.#total -= bytes;
  }

  enforce(): void {
    if (this.#total <= this.#limit) return;
    for (const client of this.clients) client.refresh();
    while (this.#total > this.#limit) {
      // Do not cut the only response with waiting bytes, because it may be a list that is larger than the budget.
      const [slowest, ...others] = [...this.clients]
        .filter((client) => client.waitingBytes > 0)
        .sort((a, b) => b.waitingBytes - a.waitingBytes);
      if (slowest === undefined || others.length === 0) return;
      slowest.cut();
    }
  }
}

interface Shared {
  waiting: WaitingBytes;
  objects: HeldObjects;
  timers: Timers;
  log: Log;
}

class Client implements Outgoing {
  #output: Writable;
  readonly #path: string;
  readonly #shared: Shared;
  /** Undefined before the first hold(), because most responses hold no object. */
  #holder: Holder | undefined;
  /** `times`: the number of calls of keep() without a matching drop(). Undefined before the first keep(). */
  #own: Map<object, { times: number; bytes: number }> | undefined;
  #ownBytes = 0;
  /** The unsent bytes of the output at the last refresh(). */
  #buffered = 0;

  constructor(output: Writable, path: string, shared: Shared) {
    this.#output = output;
    this.#path = path;
    this.#shared = shared;
    shared.waiting.clients.add(this);
    this.#closeWith(output);
  }

  redirect(output: Writable): void {
    this.#output = output;
    this.#closeWith(output);
  }

  #closeWith(output: Writable): void {
    output.once('close', () => {
      if (output === this.#output) this.#forget();
    });
  }

  get isClosed(): boolean {
    return this.#output.destroyed;
  }

  get isReady(): boolean {
    return !this.#output.destroyed && !this.#output.writableNeedDrain;
  }

  destroy(): void {
    this.#output.destroy();
  }

  hold(object: KubeObject): void {
    if (!this.#isOpen) return;
    this.#holder ??= this.#shared.objects.open((heldBytes) => this.#cutAndLog({ heldBytes }));
    this.#holder.hold(object);
  }

  release(object: KubeObject): void {
    this.#holder?.release(object);
  }

  get waitingBytes(): number {
    return this.#ownBytes + this.#buffered;
  }

  refresh(): void {
    const now = this.#output.destroyed ? 0 : this.#output.writableLength;
    this.#shared.waiting.add(now - this.#buffered);
    this.#buffered = now;
  }

  cut(): void {
    this.#cutAndLog({ waitingBytes: this.waitingBytes });
  }

  write(data: string | Uint8Array): boolean {
    if (this.#output.destroyed) return false;
    const more = this.#output.write(data);
    this.refresh();
    this.#shared.waiting.enforce();
    return more;
  }

  end(data?: string | Uint8Array): void {
    if (!this.#output.destroyed) this.#output.end(data);
    this.refresh();
    if (data !== undefined) this.#shared.waiting.enforce();
  }

  async ready(within?: number): Promise<void> {
    if (this.#output.destroyed || !this.#output.writableNeedDrain) return;
    const { timers } = this.#shared;
    const timer = within === undefined ? undefined : timers.at(timers.now() + within, () => this.cut());
    await drainedOrClosed(this.#output);
    timer?.cancel();
    this.refresh();
  }

  keep(object: object, bytes: number): void {
    if (!this.#isOpen) return;
    this.#own ??= new Map();
    const times = this.#own.get(object)?.times ?? 0;
    this.#own.set(object, { times: times + 1, bytes });
    this.#ownBytes += bytes;
    this.#shared.waiting.keep(object, bytes);
    this.#shared.waiting.enforce();
  }

  drop(object: object, bytes: number): void {
    const own = this.#own?.get(object);
    if (own === undefined) return;
    this.#ownBytes -= bytes;
    if (own.times > 1) own.times -= 1;
    else this.#own?.delete(object);
    this.#shared.waiting.drop(object, bytes);
  }

  /** False after #forget(). Objects that hold() or keep() added afterwards would count forever. */
  get #isOpen(): boolean {
    return this.#shared.waiting.clients.has(this);
  }

  #cutAndLog(fields: Record<string, number>): void {
    this.#shared.log.warn('response cut: the client reads too slowly', { path: this.#path, ...fields });
    this.#forget();
    this.#output.destroy();
  }

  #forget(): void {
    if (!this.#shared.waiting.clients.delete(this)) return;
    this.#holder?.close();
    this.#shared.waiting.add(-this.#buffered);
    this.#buffered = 0;
    for (const [object, { times, bytes }] of [...(this.#own ?? [])]) {
      for (let time = 0; time < times; time++) this.drop(object, bytes);
    }
  }
}
