import { workInTurns } from '../../platform/work-in-turns.ts';
import type { Store } from '../../store/store.ts';
import { REGISTRY_PREFIX } from '../cache/keys.ts';
import type { Configuration } from './configuration.ts';
import { decrypt, UnreadableValueError } from './encrypted-store.ts';
import { readConfiguration } from './encryption.ts';
import { PLAIN } from './transformer.ts';

const PAGE = 500;

/**
 * Resolves to the store keys of the values that cannot be decrypted with the encryption keys in `configFile`, or in the data folder if
 * `configFile` is ''. Deletes these values if `really` is true. `store`: the store with the encrypted values. Rejects with a UserError if a
 * key file is invalid, or if `configFile` is missing.
 */
export async function discardUnreadable(
  store: Store,
  dataDir: string,
  configFile: string,
  really: boolean,
): Promise<string[]> {
  const configuration = await readConfiguration(dataDir, configFile);
  const keys = await unreadableKeys(store, configuration);
  if (really) for (const key of keys) await store.txn({ compare: [], deletes: [key] });
  return keys;
}

/** Resolves to the store keys of the values that cannot be decrypted. `configuration`: undefined if there are no encryption keys. */
export async function unreadableKeys(store: Store, configuration: Configuration | undefined): Promise<string[]> {
  const betweenSteps = workInTurns();
  const keys: string[] = [];
  let after: string | undefined;
  for (let remaining = 1; remaining > 0; ) {
    const page = await store.range({ prefix: REGISTRY_PREFIX, after, limit: PAGE });
    for (const { key, value } of page.items) {
      try {
        decrypt(configuration?.transformerFor(key) ?? PLAIN, key, value);
      } catch (error) {
        if (!(error instanceof UnreadableValueError)) throw error;
        keys.push(key);
      }
      await betweenSteps();
    }
    ({ remaining } = page);
    after = page.items.at(-1)?.key;
  }
  return keys;
}
