/**
 * The newest events of one resource: what a watcher that comes back at a resourceVersion missed.
 *
 * Invariant: at most `capacity` events, whose objects have at most WINDOW_BYTES together or are a single one.
 */
import type { CacheEvent } from './watch-cache.ts';

/** The bytes of the objects as they are stored: a thousand objects of 8 kB, which is larger than most. */
const WINDOW_BYTES = 8 * 1024 * 1024;

export class EventWindow {
  readonly #capacity: number;
  /** The oldest event is at #first. The slots before it are empty. */
  #events: ({ event: CacheEvent; bytes: number } | undefined)[] = [];
  #first = 0;
  #bytes = 0;
  #oldestRevision: number;

  /** `revision`: the window holds every event after it. */
  constructor(capacity: number, revision: number) {
    this.#capacity = capacity;
    this.#oldestRevision = revision;
  }

  /** Events after this revision (and after any later one) are complete. */
  get oldestRevision(): number {
    return this.#oldestRevision;
  }

  /** `bytes`: of the event's object. */
  push(event: CacheEvent, bytes: number): void {
    this.#events.push({ event, bytes });
    this.#bytes += bytes;
    while (this.#length > this.#capacity || (this.#bytes > WINDOW_BYTES && this.#length > 1)) this.#forgetOldest();
  }

  /** The events after the revision, oldest first; undefined where some of them are gone. */
  after(revision: number): CacheEvent[] | undefined {
    if (revision < this.#oldestRevision) return undefined;
    let low = this.#first;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#at(middle).event.revision > revision) high = middle;
      else low = middle + 1;
    }
    return Array.from({ length: this.#events.length - low }, (_, index) => this.#at(low + index).event);
  }

  get #length(): number {
    return this.#events.length - this.#first;
  }

  #at(index: number): { event: CacheEvent; bytes: number } {
    return this.#events[index] as { event: CacheEvent; bytes: number };
  }

  #forgetOldest(): void {
    const { event, bytes } = this.#at(this.#first);
    this.#oldestRevision = event.revision;
    this.#bytes -= bytes;
    this.#events[this.#first] = undefined;
    this.#first++;
    if (this.#first < this.#capacity && this.#length > 1) return;
    this.#events = this.#events.slice(this.#first);
    this.#first = 0;
  }
}
