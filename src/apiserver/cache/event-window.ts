/**
 * The newest events of one resource, at most `capacity`: what a watcher that comes back at a resourceVersion missed.
 */
import type { CacheEvent } from './watch-cache.ts';

export class EventWindow {
  readonly #capacity: number;
  /** A ring: the oldest event is at #first. */
  readonly #ring: CacheEvent[] = [];
  #first = 0;
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

  push(event: CacheEvent): void {
    if (this.#ring.length < this.#capacity) {
      this.#ring.push(event);
      return;
    }
    this.#oldestRevision = (this.#ring[this.#first] as CacheEvent).revision;
    this.#ring[this.#first] = event;
    this.#first = (this.#first + 1) % this.#capacity;
  }

  /** The events after the revision, oldest first; undefined where some of them are gone. */
  after(revision: number): CacheEvent[] | undefined {
    if (revision < this.#oldestRevision) return undefined;
    let low = 0;
    let high = this.#ring.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#at(middle).revision > revision) high = middle;
      else low = middle + 1;
    }
    return Array.from({ length: this.#ring.length - low }, (_, index) => this.#at(low + index));
  }

  #at(index: number): CacheEvent {
    return this.#ring[(this.#first + index) % this.#ring.length] as CacheEvent;
  }
}
