/**
 * Reads the history of a store, which is an undo log: each revision has one record with the previous values of the keys that the revision
 * changed. Records are deleted oldest first; the deletion of a record does not affect later records.
 */
import type { StoredValue, StoreEvent } from './store.ts';

export interface UndoChange {
  key: string;
  previous: StoredValue | undefined;
}

export interface HistoryRecord {
  revision: number;
  changes: UndoChange[];
}

/**
 * Returns the events for the keys with the prefix, oldest first. `records`: all records after some revision, oldest first. `current`:
 * returns the newest value of a key; undefined if the key does not exist.
 */
export function eventsOf(
  records: readonly HistoryRecord[],
  prefix: string,
  current: (key: string) => StoredValue | undefined,
): StoreEvent[] {
  const newer = new Map<string, StoredValue | undefined>();
  const events: StoreEvent[] = [];
  for (const { revision, changes } of [...records].reverse()) {
    for (const { key, previous } of [...changes].reverse()) {
      if (!key.startsWith(prefix)) continue;
      const kv = newer.has(key) ? newer.get(key) : current(key);
      newer.set(key, previous);
      events.push(eventOf(key, revision, previous, kv));
    }
  }
  return events.reverse();
}

/**
 * Adds to `state` the previous values in the record, for the keys with the prefix that `state` does not contain. Call the function for the
 * oldest record first.
 */
export function addStateBefore(
  state: Map<string, StoredValue | undefined>,
  { changes }: HistoryRecord,
  prefix: string,
): void {
  for (const { key, previous } of changes) if (key.startsWith(prefix) && !state.has(key)) state.set(key, previous);
}

/**
 * Returns the values before the first of the records (oldest first) for the keys with the prefix that the records changed; undefined for a
 * key that did not exist.
 */
export function stateBefore(records: Iterable<HistoryRecord>, prefix: string): Map<string, StoredValue | undefined> {
  const state = new Map<string, StoredValue | undefined>();
  for (const record of records) addStateBefore(state, record, prefix);
  return state;
}

export function eventOf(
  key: string,
  revision: number,
  previous: StoredValue | undefined,
  kv: StoredValue | undefined,
): StoreEvent {
  if (kv !== undefined) return { type: 'put', kv, previous };
  return { type: 'delete', key, revision, previous: previous as StoredValue };
}
