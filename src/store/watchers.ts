/**
 * The listeners of a store. Each knows the revision up to which it has been told, so one that started on a newer
 * snapshot than the last dispatched revision is told nothing twice.
 */
import type { StoreEvent } from './store.ts';
import { eventKey, eventRevision } from './transaction.ts';

interface Watcher {
  prefix: string;
  seenRevision: number;
  listener: (events: StoreEvent[]) => void;
}

export interface Watchers {
  /** Returns the function that ends it. */
  add(prefix: string, seenRevision: number, listener: (events: StoreEvent[]) => void): () => void;
  /** Events in revision order, each revision whole. */
  dispatch(events: readonly StoreEvent[]): void;
}

export function createWatchers(): Watchers {
  const watchers = new Set<Watcher>();
  return {
    add(prefix, seenRevision, listener) {
      const watcher: Watcher = { prefix, seenRevision, listener };
      watchers.add(watcher);
      return () => {
        watchers.delete(watcher);
      };
    },
    dispatch(events) {
      const last = events.at(-1);
      if (last === undefined) return;
      for (const watcher of [...watchers]) {
        const wanted = events.filter(
          (event) => eventRevision(event) > watcher.seenRevision && eventKey(event).startsWith(watcher.prefix),
        );
        watcher.seenRevision = Math.max(watcher.seenRevision, eventRevision(last));
        if (wanted.length > 0 && watchers.has(watcher)) watcher.listener(wanted);
      }
    },
  };
}
