import type { StoreEvent } from '../store.ts';
import { eventKey, eventRevision } from '../transaction.ts';

/** The limit on the total size of the keys and replaced values in the history. */
const HISTORY_BYTES = 64 * 1024 * 1024;

function replaced(events: readonly StoreEvent[]): Map<number, number> {
  const revisions = new Map<number, number>();
  for (const event of events) {
    const bytes = eventKey(event).length + (event.previous?.value.length ?? 0);
    revisions.set(eventRevision(event), (revisions.get(eventRevision(event)) ?? 0) + bytes);
  }
  return revisions;
}

export class HistorySize {
  readonly #revisions = new Map<number, number>();
  #bytes = 0;

  /** `bytes`: the size of the revision's record, or of its keys and replaced values. */
  load(revision: number, bytes: number): void {
    this.#revisions.set(revision, bytes);
    this.#bytes += bytes;
  }

  add(events: readonly StoreEvent[]): void {
    for (const [revision, bytes] of replaced(events)) this.load(revision, bytes);
  }

  /** Subtracts the revisions up to and including `until`. */
  forget(until: number): void {
    for (const [revision, bytes] of this.#revisions) {
      if (revision > until) return;
      this.#revisions.delete(revision);
      this.#bytes -= bytes;
    }
  }

  /**
   * Returns the newest of the revisions that must be deleted so that the history is within the limit after the events are added; 0 if none
   * must be deleted.
   */
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
