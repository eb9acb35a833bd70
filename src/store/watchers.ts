/**
 * The listeners of a store. Each records the last revision that it has seen, so a listener that started from a snapshot newer
 * than the last dispatched revision does not get any event twice.
 */
import type { StoreEvent } from './store.ts';
import { eventKey, eventRevision } from './transaction.ts';

interface Watcher {
  prefix: string;
  seenRevision: number;
  listener: (events: StoreEvent[]) => void;
}

export interface Watchers {
  /** Returns a function that removes the listener. */
  add(prefix: string, seenRevision: number, listener: (events: StoreEvent[]) => void): () => void;
  /** Takes events in revision order, with all events of each revision. */
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
