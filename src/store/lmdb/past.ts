/** Reads the store's history and yields to other work meanwhile: up to 10,000 records of 64 MiB together. */
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
 * Collects the values that the keys with the prefix had at an older revision, for those that have changed since. Records never change;
 * reading stops at one that has been forgotten. `tables` is called for each record because the store may have been reopened; it
 * throws if the store has been closed. Rejects when the signal aborts.
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
