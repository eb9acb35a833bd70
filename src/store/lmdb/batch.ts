/** What one LMDB transaction of the store writes. */
import type { StoreEvent, Txn, TxnResult } from '../store.ts';
import { eventKey, eventRevision } from '../transaction.ts';
import { fromChanges, fromStored, type Tables } from './tables.ts';

/** A call that waits for a commit. */
export type Waiting = (
  | { kind: 'txn'; txn: Txn; resolve: (result: TxnResult) => void }
  | { kind: 'compact'; revision: number; resolve: () => void }
) & { reject: (error: Error) => void };

/** What one LMDB transaction writes. */
export interface Batch {
  revision: number;
  compacted: number;
  events: StoreEvent[];
  /** Answers that hold once it is durable. */
  answers: (() => void)[];
}

/** Resolves when the batch is on the disk. */
export async function commit(
  { root, current, history, meta }: Tables,
  batch: Batch,
  before: { newest: number; compacted: number },
): Promise<void> {
  const changes = Map.groupBy(batch.events, eventRevision);
  await root.batch(() => {
    for (const event of batch.events) {
      if (event.type === 'put') current.put(event.kv.key, fromStored(event.kv));
      else current.remove(event.key);
    }
    for (const [revision, events] of changes) {
      // A batch larger than the history adds nothing that it would forget at once.
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
