/**
 * The history of a store as an undo log: for each revision, what its keys held before it. A value is thus kept once:
 * in the current state, or in the record of the revision that replaced it. Forgetting records from the oldest on
 * never makes the others unreadable.
 */
import type { StoredValue, StoreEvent } from './store.ts';

export interface UndoChange {
  key: string;
  /** What the key held before the revision; absent: nothing. */
  previous: StoredValue | undefined;
}

export interface HistoryRecord {
  revision: number;
  changes: UndoChange[];
}

/** The events of the records, given every record after some revision, oldest first, and the current state. */
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

/** Adds what the keys that changed in the record held before it. Records are to come oldest first. */
export function addStateBefore(
  state: Map<string, StoredValue | undefined>,
  { changes }: HistoryRecord,
  prefix: string,
): void {
  for (const { key, previous } of changes) if (key.startsWith(prefix) && !state.has(key)) state.set(key, previous);
}

/** What the keys that changed in the records held before the first of them. */
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
