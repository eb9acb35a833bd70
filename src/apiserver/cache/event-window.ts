/**
 * The newest events of one resource: what a watcher that comes back at a resourceVersion missed.
 *
 * Invariants:
 *  1. A window has at most `capacity` events, whose objects take at most WINDOW_BYTES together or are a single one.
 *  2. The objects of all windows take at most ALL_WINDOWS_BYTES: beyond that the largest window forgets its oldest events.
 */
import type { CacheEvent } from './watch-cache.ts';

/** The memory of a thousand objects that have 8 kB as they are stored, which is larger than most. */
const WINDOW_BYTES = 16 * 1024 * 1024;
const ALL_WINDOWS_BYTES = 64 * 1024 * 1024;

/** The memory that the windows of all resources share. */
export class WindowBudget {
  readonly #windows = new Set<EventWindow>();
  readonly #limit: number;
  #bytes = 0;

  constructor(limit = ALL_WINDOWS_BYTES) {
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  count(window: EventWindow, bytes: number): void {
    this.#windows.add(window);
    this.#bytes += bytes;
  }

  enforce(): void {
    while (this.#bytes > this.#limit) {
      const largest = [...this.#windows].reduce((most, window) => (window.bytes > most.bytes ? window : most));
      if (!largest.forgetOldest()) return;
    }
  }
}

export class EventWindow {
  readonly #capacity: number;
  readonly #budget: WindowBudget;
  /** The oldest event is at #first. The slots before it are empty. */
  #events: ({ event: CacheEvent; bytes: number } | undefined)[] = [];
  #first = 0;
  #bytes = 0;
  #oldestRevision: number;

  /** `revision`: the window holds every event after it. */
  constructor(capacity: number, revision: number, budget: WindowBudget) {
    this.#capacity = capacity;
    this.#budget = budget;
    this.#oldestRevision = revision;
  }

  /** Events after this revision (and after any later one) are complete. */
  get oldestRevision(): number {
    return this.#oldestRevision;
  }

  /** `bytes`: of the event's object. */
  push(event: CacheEvent, bytes: number): void {
    this.#events.push({ event, bytes });
    this.#count(bytes);
    while (this.#length > this.#capacity || (this.#bytes > WINDOW_BYTES && this.#length > 1)) this.forgetOldest();
    this.#budget.enforce();
  }

  /** The memory of the objects of its events. */
  get bytes(): number {
    return this.#bytes;
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.count(this, bytes);
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

  /** Returns false where there is no event, or a single one: a watcher that follows closely gets that. */
  forgetOldest(): boolean {
    if (this.#length <= 1) return false;
    const { event, bytes } = this.#at(this.#first);
    this.#oldestRevision = event.revision;
    this.#count(-bytes);
    this.#events[this.#first] = undefined;
    this.#first++;
    if (this.#first < this.#capacity && this.#length > 1) return true;
    this.#events = this.#events.slice(this.#first);
    this.#first = 0;
    return true;
  }
}
