import type { StoredValue, StoreEvent, Txn, TxnResult } from '../store.ts';
import { evaluate, eventKey, eventRevision, eventValue } from '../transaction.ts';
import type { Commit } from './data-file.ts';
import { fromChanges, fromStored, type Tables } from './tables.ts';

export type Waiting = (
  | { kind: 'txn'; txn: Txn; resolve: (result: TxnResult) => void }
  | { kind: 'compact'; revision: number; resolve: () => void }
) & { reject: (error: Error) => void };

/** The content of one LMDB transaction. `revision` and `compacted` are those of the store after the transaction. */
export interface Batch {
  revision: number;
  compacted: number;
  events: StoreEvent[];
  /** To be called when the batch is durable. */
  answers: (() => void)[];
}

export interface Before {
  newest: number;
  compacted: number;
}

export const commitOf = ({ events, revision, compacted }: Batch, before: Before): Commit => ({
  events,
  keepsHistory: compacted < revision,
  forgotten: Math.min(compacted, before.newest) - before.compacted,
});

/** Evaluates the calls in order. Each call sees the committed state, as returned by `read`, and the writes of the calls before it. */
export function evaluateBatch(
  taken: Waiting[],
  revision: number,
  compacted: number,
  read: (key: string) => StoredValue | undefined,
): Batch {
  const known = new Map<string, StoredValue | undefined>();
  const lookup = (key: string): StoredValue | undefined => {
    if (!known.has(key)) known.set(key, read(key));
    return known.get(key);
  };
  const batch: Batch = { revision, compacted, events: [], answers: [] };
  for (const waiting of taken) {
    if (waiting.kind === 'compact') {
      const { resolve, reject } = waiting;
      if (waiting.revision > batch.revision) {
        const text = `cannot compact to the future revision ${waiting.revision}, the newest is ${batch.revision}`;
        reject(new Error(text));
        continue;
      }
      batch.compacted = Math.max(batch.compacted, waiting.revision);
      batch.answers.push(resolve);
      continue;
    }
    const { result, events } = evaluate(waiting.txn, batch.revision, lookup);
    for (const event of events) known.set(eventKey(event), eventValue(event));
    batch.revision = result.revision;
    batch.events.push(...events);
    batch.answers.push(() => waiting.resolve(result));
  }
  return batch;
}

/** The limit on the growth of a value on a full disk, which is enough for the status of a terminating Pod. */
const SMALL_GROWTH_BYTES = 4096;

/**
 * Whether all events are deletions or small updates, which are allowed even on a full disk. A commit on a full disk must not also add the
 * replaced values to the history, because they need space, too.
 */
export const needsLittle = (events: readonly StoreEvent[]): boolean =>
  events.every((event) => {
    if (event.type === 'delete') return true;
    return event.kv.value.length <= (event.previous?.value.length ?? Number.NaN) + SMALL_GROWTH_BYTES;
  });

/** Writes the batch in one LMDB transaction. Resolves when the transaction is flushed to the disk. */
export async function commit({ root, current, history, meta }: Tables, batch: Batch, before: Before): Promise<void> {
  const changes = Map.groupBy(batch.events, eventRevision);
  await root.batch(() => {
    for (const event of batch.events) {
      if (event.type === 'put') current.put(event.kv.key, fromStored(event.kv));
      else current.remove(event.key);
    }
    for (const [revision, events] of changes) {
      // Skip the records that the batch itself would delete, for example because a large batch exceeds the limit of the history.
      if (revision <= batch.compacted) continue;
      history.put(revision, fromChanges(events.map((event) => ({ key: eventKey(event), previous: event.previous }))));
    }
    for (let revision = before.compacted + 1; revision <= Math.min(batch.compacted, before.newest); revision++) {
      history.remove(revision);
    }
    meta.put('revision', batch.revision);
    if (batch.compacted !== before.compacted) meta.put('compacted', batch.compacted);
  });
  root.resetReadTxn();
}
