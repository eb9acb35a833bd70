/** A bounded cache of name servers' responses. A full cache drops the least recently used responses. */
import type { ForeignResponse } from './foreign-response.ts';

export interface CacheLimits {
  entries: number;
  /** An estimate of the memory of all entries. */
  bytes: number;
  /** Longer messages are not stored. */
  messageBytes: number;
}

export const CACHE_LIMITS: CacheLimits = { entries: 8192, bytes: 4 * 2 ** 20, messageBytes: 16 * 2 ** 10 };

/** The estimated memory of an entry without its message and key. */
const ENTRY_BYTES = 300;

interface Entry {
  response: ForeignResponse;
  storedMillis: number;
  bytes: number;
}

export class AnswerCache {
  readonly #limits: CacheLimits;
  /** The least recently used entry comes first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(limits: CacheLimits = CACHE_LIMITS) {
    this.#limits = limits;
  }

  /** Returns the stored response and its age; undefined if no response is stored, or if its lifetime is over. */
  get(key: string, nowMillis: number): { response: ForeignResponse; ageSeconds: number } | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const ageSeconds = Math.floor((nowMillis - entry.storedMillis) / 1000);
    this.#remove(key, entry);
    if (ageSeconds >= entry.response.lifetimeSeconds) return undefined;
    this.#add(key, entry);
    return { response: entry.response, ageSeconds };
  }

  /** Replaces the response that is stored for the key. Stores none if the response may not be reused or is longer than `messageBytes`. */
  put(key: string, response: ForeignResponse, nowMillis: number): void {
    const old = this.#entries.get(key);
    if (old !== undefined) this.#remove(key, old);
    if (response.lifetimeSeconds <= 0 || response.message.length > this.#limits.messageBytes) return;
    const bytes = response.message.length + 2 * key.length + 8 * response.ttls.length + ENTRY_BYTES;
    this.#add(key, { response, storedMillis: nowMillis, bytes });
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size <= this.#limits.entries && this.#bytes <= this.#limits.bytes) break;
      this.#remove(oldest, entry);
    }
  }

  get size(): { entries: number; bytes: number } {
    return { entries: this.#entries.size, bytes: this.#bytes };
  }

  #add(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes;
  }

  #remove(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}
