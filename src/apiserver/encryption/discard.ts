import { UserError } from '../../platform/files.ts';
import type { Store } from '../../store/store.ts';
import { readConfiguration } from './read-configuration.ts';
import { createDiagnosis, type KeySource, remedyFor, unreadableValues } from './unreadable-values.ts';

export interface Discarded {
  /** The store keys of the values that no known key decrypts. */
  lost: string[];
  /** Maps each piece of advice to the store keys of the values that can be read once the user has followed it. */
  kept: Map<string, string[]>;
}

/**
 * Resolves to the values that cannot be read with the encryption keys. Deletes those that are lost if `really` is true. `store`: the store
 * with the encrypted values. Rejects with a UserError if `configFile` is missing, or if a file that may have the key of a value is invalid.
 */
export async function discardUnreadable(store: Store, source: KeySource, really: boolean): Promise<Discarded> {
  const { dataDir, configFile, formerFile = '' } = source;
  const configuration = await readConfiguration(dataDir, configFile, configFile === formerFile);
  const causeOf = await createDiagnosis(source);
  const lost: string[] = [];
  const kept = new Map<string, string[]>();
  for await (const error of unreadableValues(store, configuration)) {
    const cause = causeOf(error);
    if (cause instanceof UserError) throw cause;
    if (cause === 'lost') lost.push(error.key);
    else {
      const remedy = remedyFor(cause, source);
      const keys = kept.get(remedy);
      if (keys === undefined) kept.set(remedy, [error.key]);
      else keys.push(error.key);
    }
  }
  if (really) for (const key of lost) await store.txn({ compare: [], deletes: [key] });
  return { lost, kept };
}
