/** How much the history of the store takes, so that it is bounded in bytes as well as in revisions. */
import type { StoreEvent } from '../store.ts';
import { eventKey, eventRevision } from '../transaction.ts';

/** What the values that were replaced may take together. */
const HISTORY_BYTES = 64 * 1024 * 1024;

/** By revision, the bytes of the keys that change and of what they held. */
function replaced(events: readonly StoreEvent[]): Map<number, number> {
  const revisions = new Map<number, number>();
  for (const event of events) {
    const bytes = eventKey(event).length + (event.previous?.value.length ?? 0);
    revisions.set(eventRevision(event), (revisions.get(eventRevision(event)) ?? 0) + bytes);
  }
  return revisions;
}

export class HistorySize {
  /** Bytes by revision, the oldest first. */
  readonly #revisions = new Map<number, number>();
  #bytes = 0;

  /** A revision that is in the history when the store is opened. */
  load(revision: number, bytes: number): void {
    this.#revisions.set(revision, bytes);
    this.#bytes += bytes;
  }

  add(events: readonly StoreEvent[]): void {
    for (const [revision, bytes] of replaced(events)) this.load(revision, bytes);
  }

  forget(until: number): void {
    for (const [revision, bytes] of this.#revisions) {
      if (revision > until) return;
      this.#revisions.delete(revision);
      this.#bytes -= bytes;
    }
  }

  /** The revision up to which the history has to go so that the rest fits with what the events add; 0: none. */
  excess(events: readonly StoreEvent[]): number {
    const added = replaced(events);
    let bytes = this.#bytes + [...added.values()].reduce((sum, each) => sum + each, 0);
    let until = 0;
    for (const revisions of [this.#revisions, added]) {
      for (const [revision, each] of revisions) {
        if (bytes <= HISTORY_BYTES) return until;
        until = revision;
        bytes -= each;
      }
    }
    return until;
  }
}
