/** Reads the history of the store in turns: it may have 10,000 records, of 64 MiB together. */
import { workInTurns } from '../../platform/work-in-turns.ts';
import { addStateBefore } from '../history.ts';
import type { StoredValue } from '../store.ts';
import { type Tables, toRecord } from './tables.ts';

export interface Past {
  /** The keys that changed after the older revision, each with its value at that revision. */
  changed: Map<string, StoredValue | undefined>;
  /** The last revision that was read. */
  read: number;
}

/**
 * Reads the values of the keys with the prefix at an older revision, as far as they have changed since. Records never change; where
 * one has been forgotten, reading ends. `tables` is called before each record, as the store may have been opened anew; it throws
 * where the store has been closed. Rejects when the signal aborts.
 */
export async function readPast(
  tables: () => Tables,
  after: number,
  newest: () => number,
  prefix: string,
  signal?: AbortSignal,
): Promise<Past> {
  const betweenRecords = workInTurns();
  const past: Past = { changed: new Map(), read: after };
  while (past.read < newest()) {
    signal?.throwIfAborted();
    const revision = past.read + 1;
    const row = tables().history.get(revision);
    if (row === undefined) break;
    addStateBefore(past.changed, toRecord(revision, row), prefix);
    past.read = revision;
    await betweenRecords();
  }
  return past;
}
