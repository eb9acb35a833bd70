import { workInTurns } from '../../platform/work-in-turns.ts';
import { addStateBefore } from '../history.ts';
import type { StoredValue } from '../store.ts';
import { type Tables, toRecord } from './tables.ts';

export interface Past {
  /**
   * The keys with the prefix that have changed after the revision `after`, with their values at that revision (undefined: the key did not
   * exist).
   */
  changed: Map<string, StoredValue | undefined>;
  /** The newest revision whose record was read; `after` if no record was read. */
  read: number;
}

/**
 * Reads the records after the revision `after` up to newest(). Yields to other work, because the history can be long. Other calls may
 * commit during the read, because records never change. The read ends early at a record that has been deleted. Calls `tables` for each
 * record, because the store may have been reopened; `tables` throws if the store has been closed. Rejects when the signal aborts.
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
