/** A store for tests and simulations. */
import { eventsOf, type HistoryRecord, stateBefore } from '../history.ts';
import {
  CompactedError,
  type RangeOptions,
  type RangeResult,
  type Store,
  type StoredValue,
  type Txn,
  type TxnResult,
} from '../store.ts';
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
import { SortedValues } from './sorted-values.ts';

export function createMemoryStore(options: { historyRevisions?: number } = {}): Store {
  const historyRevisions = options.historyRevisions ?? 10_000;
  const values = new SortedValues();
  const watchers = createWatchers();
  let history: HistoryRecord[] = [];
  let revision = 0;
  let compacted = 0;

  const recordsAfter = (after: number): HistoryRecord[] => history.slice(Math.max(0, after - compacted));
  const forget = (until: number): void => {
    history = recordsAfter(until);
    compacted = until;
  };

  function apply(txn: Txn): TxnResult {
    const { result, events } = evaluate(txn, revision, (key) => values.get(key));
    if (events.length === 0) return result;
    for (const event of events) values.set(eventKey(event), eventValue(event));
    history.push({
      revision: result.revision,
      changes: events.map((event) => ({ key: eventKey(event), previous: event.previous })),
    });
    revision = result.revision;
    // Delete 1000 records at a time, so that not every write copies the array.
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
      const changed = at === revision ? undefined : stateBefore(recordsAfter(at), range.prefix);
      return { ...readRange(values, range, changed), revision: at };
    },
    async txn(txn) {
      checkTxn(txn);
      // If a listener called txn(), this wait lets all listeners get the current revision first.
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

/**
 * Reads a range of the newest state, or of an older state if `changed` is defined. `changed`: the keys that have changed after the older
 * state, with their values in that state (undefined: the key did not exist).
 */
function readRange(
  values: SortedValues,
  range: RangeOptions,
  changed: Map<string, StoredValue | undefined> | undefined,
): Omit<RangeResult, 'revision'> {
  const from = range.after !== undefined && range.after >= range.prefix ? `${range.after}\0` : range.prefix;
  const keys = values.keysBetween(from, prefixEnd(range.prefix));
  if (changed === undefined) {
    const items = firstValues(keys, (key) => values.get(key), range.limit);
    return { items, remaining: keys.length - items.length };
  }
  const newest = {
    keys,
    read: (key: string) => values.get(key),
    has: (key: string) => values.has(key),
    countAfter: (key: string) => keys.length - (values.position(`${key}\0`) - values.position(from)),
  };
  return rewoundRange(newest, changed, range);
}
