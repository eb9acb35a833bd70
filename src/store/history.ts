/**
 * The history of a store as an undo log: a record for each revision with the previous values of the keys that it changed.
 * Each value is thus stored once: in the current state, or in the record of the revision that replaced it. Records are
 * forgotten oldest first, which leaves the others readable.
 */
import type { StoredValue, StoreEvent } from './store.ts';

export interface UndoChange {
  key: string;
  /** The value before the revision; undefined if the key did not exist. */
  previous: StoredValue | undefined;
}

export interface HistoryRecord {
  revision: number;
  changes: UndoChange[];
}

/** Returns the events of the records. Needs every record after some revision, oldest first, and the current state. */
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

/** Adds the values that the record's keys had before it. Call it with the records oldest first. */
export function addStateBefore(
  state: Map<string, StoredValue | undefined>,
  { changes }: HistoryRecord,
  prefix: string,
): void {
  for (const { key, previous } of changes) if (key.startsWith(prefix) && !state.has(key)) state.set(key, previous);
}

/** Returns, for the keys that the records changed, the values before the first record. */
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
