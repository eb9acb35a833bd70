/**
 * The store in memory, for tests and simulations. Data lives as long as the process; every write is immediate.
 */
import { eventsOf, type HistoryRecord, stateBefore } from '../history.ts';
import { CompactedError, type Store, type StoredValue, type Txn, type TxnResult } from '../store.ts';
import {
  checkRevision,
  checkTxn,
  evaluate,
  eventKey,
  eventValue,
  firstValues,
  prefixEnd,
  rewoundRange,
} from '../transaction.ts';
import { createWatchers } from '../watchers.ts';

export function createMemoryStore(options: { historyRevisions?: number } = {}): Store {
  const historyRevisions = options.historyRevisions ?? 10_000;
  const values = new Map<string, StoredValue>();
  /** The keys of `values`, ascending. */
  const keys: string[] = [];
  const watchers = createWatchers();
  let history: HistoryRecord[] = [];
  let revision = 0;
  let compacted = 0;

  /** Index of the first key that is not less than the given one. */
  const position = (key: string): number => {
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const set = (key: string, kv: StoredValue | undefined): void => {
    const present = values.has(key);
    if (kv === undefined) {
      values.delete(key);
      if (present) keys.splice(position(key), 1);
      return;
    }
    values.set(key, kv);
    if (!present) keys.splice(position(key), 0, key);
  };
  const recordsAfter = (after: number): HistoryRecord[] => history.slice(Math.max(0, after - compacted));
  const forget = (until: number): void => {
    history = recordsAfter(until);
    compacted = until;
  };

  function apply(txn: Txn): TxnResult {
    const { result, events } = evaluate(txn, revision, (key) => values.get(key));
    if (events.length === 0) return result;
    for (const event of events) set(eventKey(event), eventValue(event));
    history.push({
      revision: result.revision,
      changes: events.map((event) => ({ key: eventKey(event), previous: event.previous })),
    });
    revision = result.revision;
    // Forget 1000 records at a time, so that not every write copies the array.
    if (history.length >= historyRevisions + 1000) forget(revision - historyRevisions);
    watchers.dispatch(events);
    return result;
  }

  return {
    revision: () => revision,
    async get(key, at) {
      checkRevision(at, compacted, revision);
      if (at === undefined || at === revision) return values.get(key);
      const before = stateBefore(recordsAfter(at), key);
      return before.has(key) ? before.get(key) : values.get(key);
    },
    async range(range) {
      const at = range.revision ?? revision;
      checkRevision(at, compacted, revision);
      const end = prefixEnd(range.prefix);
      const from = range.after !== undefined && range.after >= range.prefix ? `${range.after}\0` : range.prefix;
      const found = keys.slice(position(from), end === undefined ? keys.length : position(end));
      if (at === revision) {
        const items = firstValues(found, (key) => values.get(key), range.limit);
        return { items, revision: at, remaining: found.length - items.length };
      }
      const changed = stateBefore(recordsAfter(at), range.prefix);
      const newest = {
        keys: found,
        read: (key: string) => values.get(key),
        has: (key: string) => values.has(key),
        countAfter: (key: string) => found.length - (position(`${key}\0`) - position(from)),
      };
      return { ...rewoundRange(newest, changed, range), revision: at };
    },
    async txn(txn) {
      checkTxn(txn);
      // Never run inside the listener that called: all listeners must see one revision before the next.
      await undefined;
      return apply(txn);
    },
    watch(prefix, afterRevision, listener) {
      const after = afterRevision ?? revision;
      if (after < compacted) throw new CompactedError(compacted);
      const missed = eventsOf(recordsAfter(after), prefix, (key) => values.get(key));
      const stop = watchers.add(prefix, Math.max(after, revision), listener);
      if (missed.length > 0) listener(missed);
      return stop;
    },
    async compact(until) {
      if (until > revision)
        throw new Error(`cannot compact to the future revision ${until}, the newest is ${revision}`);
      if (until > compacted) forget(until);
    },
    async close() {},
  };
}
