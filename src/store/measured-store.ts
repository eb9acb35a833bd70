import type { Metrics } from '../platform/metrics.ts';
import type { Store } from './store.ts';

const BUCKETS_SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

/**
 * Forwards all calls to `store`, and records the durations and failures of get(), range(), txn() and compact() in `metrics`. The duration
 * of a transaction of the lmdb store includes the flush to the disk, which concurrent transactions share.
 */
export function measuredStore(store: Store, metrics: Metrics): Store {
  const durations = metrics.histogram(
    'lifepod_store_operation_duration_seconds',
    'Duration of store calls; for transactions, until they are durable.',
    ['operation'],
    BUCKETS_SECONDS,
  );
  const failures = metrics.counter('lifepod_store_operation_errors_total', 'Store calls that failed.', ['operation']);
  const timed = async <T>(operation: string, call: Promise<T>): Promise<T> => {
    const begun = performance.now();
    try {
      return await call;
    } catch (error) {
      failures.add(1, operation);
      throw error;
    } finally {
      durations.observe((performance.now() - begun) / 1000, operation);
    }
  };
  return {
    revision: () => store.revision(),
    get: (key, revision) => timed('get', store.get(key, revision)),
    range: (options) => timed('range', store.range(options)),
    txn: (txn) => timed('txn', store.txn(txn)),
    watch: (prefix, afterRevision, listener) => store.watch(prefix, afterRevision, listener),
    compact: (revision) => timed('compact', store.compact(revision)),
    close: () => store.close(),
  };
}
