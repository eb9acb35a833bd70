import { parseConfiguration } from '../../apiserver/encryption/configuration.ts';
import { keyFilePath } from '../../apiserver/encryption/key-file.ts';
import { createDiagnosis, unreadable, unreadableValues } from '../../apiserver/encryption/unreadable-values.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { openLmdbStore } from '../../store/lmdb/lmdb-store.ts';

/**
 * Rejects with a UserError if the keys do not decrypt all values in the copy of the store, because no engine would start with the backup.
 * `keys`: the text of the key file for the backup; undefined if the file is missing.
 */
export async function checkKeys(dataDir: string, storeCopy: string, keys: string | undefined): Promise<void> {
  const path = keyFilePath(dataDir);
  const configuration = keys === undefined ? undefined : await parseConfiguration(keys, path);
  const store = await openLmdbStore({ directory: storeCopy });
  try {
    const source = { dataDir, configFile: '' };
    const causeOf = await createDiagnosis(source);
    for await (const error of unreadableValues(store, configuration)) {
      if (keys !== undefined && causeOf(error) !== 'lost') throw await unreadable(source, error);
      const { key } = error;
      const problem =
        keys === undefined
          ? `the key file ${path} is missing, and the store has values that are encrypted with its keys, such as ${key}`
          : `the keys in ${path} do not decrypt values of the store, such as ${key}`;
      throw new UserError(`${problem}: ${remedyFor(dataDir)}`);
    }
  } finally {
    await store.close();
  }
}

/** Returns what the user can do. A running engine still has the keys in its memory, although the file is missing or has other keys. */
const remedyFor = (dataDir: string): string =>
  dataDirOwner(dataDir) === undefined
    ? `restore the file from a backup. If it is lost, '${rootCommand('secrets discard', dataDir)}' deletes these values`
    : `'${rootCommand('secrets rotate-key', dataDir)}' encrypts them with a new key of the running engine, and writes the file; then try again`;
