/**
 * Keeps the newest events of each resource in memory, for watches that resume at a resourceVersion.
 *
 * Invariants:
 *  1. A window has at most `capacity` events. If it has more than one event, their objects together take at most WINDOW_BYTES.
 *  2. If all windows together exceed their budget, the largest window forgets its oldest events, but not its newest one.
 */
import type { CacheEvent } from './watch-cache.ts';

/** A thousand objects with 4 KiB of JSON each take about this much memory. */
const WINDOW_BYTES = 16 * 1024 * 1024;
const ALL_WINDOWS_BYTES = 64 * 1024 * 1024;

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
  /** In revision order. The slots before the index #first are undefined. */
  #events: ({ event: CacheEvent; bytes: number } | undefined)[] = [];
  #first = 0;
  #bytes = 0;
  #oldestRevision: number;

  /** `revision`: the caller must push every event after this revision. */
  constructor(capacity: number, revision: number, budget: WindowBudget) {
    this.#capacity = capacity;
    this.#budget = budget;
    this.#oldestRevision = revision;
  }

  /** The revision after which the window contains all events. */
  get oldestRevision(): number {
    return this.#oldestRevision;
  }

  push(event: CacheEvent, bytes: number): void {
    this.#events.push({ event, bytes });
    this.#count(bytes);
    while (this.#length > this.#capacity || (this.#bytes > WINDOW_BYTES && this.#length > 1)) this.forgetOldest();
    this.#budget.enforce();
  }

  get bytes(): number {
    return this.#bytes;
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.count(this, bytes);
  }

  /** Returns the events after the revision, oldest first, or undefined if the window lacks some of them. */
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

  /** Returns false if the window has at most one event. This event stays, so that a watch that is one event behind can still resume. */
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
