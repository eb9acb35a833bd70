import type { StoreEvent } from './store.ts';
import { eventKey, eventRevision } from './transaction.ts';

interface Watcher {
  prefix: string;
  seenRevision: number;
  listener: (events: StoreEvent[]) => void;
}

export interface Watchers {
  /** Adds a listener for changes after `seenRevision` of keys with the prefix. The returned function removes the listener. */
  add(prefix: string, seenRevision: number, listener: (events: StoreEvent[]) => void): () => void;
  /** `events` must be in the order of revisions and contain all events of each revision. */
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
