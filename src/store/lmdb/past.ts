/** Reads the history of the store in turns: it may have 10,000 records, of 64 MiB together. */
import { workInTurns } from '../../platform/work-in-turns.ts';
import { addStateBefore } from '../history.ts';
import type { StoredValue } from '../store.ts';
import { type Tables, toRecord } from './tables.ts';

export interface Past {
  /** What each key that changed after the older revision held at it. */
  changed: Map<string, StoredValue | undefined>;
  /** The last revision that was read. */
  read: number;
}

/**
 * What the keys with the prefix held at an older revision, as far as they have changed since. Records never change; where one has been
 * forgotten, reading ends. `between` is called after each turn, and throws where the store has been closed meanwhile.
 */
export async function readPast(
  tables: Tables,
  after: number,
  newest: () => number,
  prefix: string,
  between: () => void,
): Promise<Past> {
  const betweenRecords = workInTurns();
  const past: Past = { changed: new Map(), read: after };
  while (past.read < newest()) {
    const revision = past.read + 1;
    const row = tables.history.get(revision);
    if (row === undefined) break;
    addStateBefore(past.changed, toRecord(revision, row), prefix);
    past.read = revision;
    await betweenRecords();
    between();
  }
  return past;
}
