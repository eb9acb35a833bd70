/** A store for tests whose listeners get every change later than its writer, like the listeners of a store in another process. */
import type { Store, StoreEvent } from './store.ts';

export type Later = (deliver: () => void) => void;

const afterOneMillisecond: Later = (deliver) => void setTimeout(deliver, 1);

/**
 * Forwards all calls to `store`, but delays the calls of the listeners: for each call, passes to `later` a function that makes the oldest
 * delayed call. By default, a call comes a millisecond late, so that the callbacks of many promises run between a write and its event.
 */
export function delayWatch(store: Store, later: Later = afterOneMillisecond): Store {
  const undelivered: (() => void)[] = [];
  return {
    revision: () => store.revision(),
    get: (key, revision) => store.get(key, revision),
    range: (options) => store.range(options),
    txn: (txn) => store.txn(txn),
    compact: (revision) => store.compact(revision),
    close: () => store.close(),
    watch(prefix, afterRevision, listener) {
      let ended = false;
      const stop = store.watch(prefix, afterRevision, (events: StoreEvent[]) => {
        undelivered.push(() => {
          if (!ended) listener(events);
        });
        later(() => undelivered.shift()?.());
      });
      return () => {
        ended = true;
        stop();
      };
    },
  };
}
