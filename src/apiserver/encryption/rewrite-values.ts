/**
 * Encrypts stored values again with the first cipher of their resource. A value that another writer changes meanwhile is not retried: the
 * writer has encrypted the value with the same cipher, unless the write began before this cipher became the first. Therefore, passes over
 * all values are repeated until a pass finds no value to encrypt.
 */
import { workInTurns } from '../../platform/work-in-turns.ts';
import type { Store, StoredValue, Txn } from '../../store/store.ts';
import type { Configuration } from './configuration.ts';
import { decrypt } from './encrypted-store.ts';

const PAGE = 500;
/** For each value, the watch cache decodes an object and calls its listeners, so few values are written at once. */
const AT_ONCE = 50;

/**
 * Resolves to the number of values that were encrypted again, once all values are encrypted with the first cipher. `store`: the store with
 * the encrypted values. `begin`: called before the first value is written. Rejects with an UnreadableValueError if a value cannot be
 * decrypted, and with the errors of Store.txn(); the values written until then remain.
 */
export async function rewriteValues(
  store: Store,
  configuration: Configuration,
  begin: () => void | Promise<void> = () => {},
): Promise<number> {
  let total = 0;
  for (;;) {
    let found = 0;
    for await (const values of staleValues(store, configuration)) {
      if (total + found === 0) await begin();
      const writes = values.map((kv) => rewriteOf(configuration, kv));
      found += values.length;
      await Promise.all(writes.map((txn) => store.txn(txn)));
    }
    if (found === 0) return total;
    total += found;
  }
}

async function* staleValues(
  store: Store,
  { prefixes, transformerFor }: Configuration,
): AsyncGenerator<readonly StoredValue[]> {
  const betweenSteps = workInTurns();
  for (const prefix of prefixes) {
    let after: string | undefined;
    for (let remaining = 1; remaining > 0; ) {
      const page = await store.range({ prefix, after, limit: PAGE });
      ({ remaining } = page);
      after = page.items.at(-1)?.key;
      const stale = page.items.filter(({ key, value }) => transformerFor(key).isStale(value));
      for (let at = 0; at < stale.length; at += AT_ONCE) {
        yield stale.slice(at, at + AT_ONCE);
        await betweenSteps();
      }
    }
  }
}

function rewriteOf({ transformerFor }: Configuration, { key, modRevision, value: stored }: StoredValue): Txn {
  const transformer = transformerFor(key);
  const value = transformer.toStorage(key, decrypt(transformer, key, stored));
  return { compare: [{ key, modRevision }], puts: [{ key, value }] };
}
