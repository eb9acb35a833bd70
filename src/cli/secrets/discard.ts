/** `lifepod secrets discard`: deletes the values in the store of a stopped engine that cannot be decrypted and thus prevent its start. */
import { join } from 'node:path';
import { discardUnreadable } from '../../apiserver/encryption/discard.ts';
import { keyOption } from '../../apiserver/encryption/read-configuration.ts';
import { checkDataFormat } from '../../engine/data-folder/format.ts';
import { lostText } from '../../engine/data-folder/lost-folder.ts';
import { type EncryptionOptions, resolveEncryptionOptions } from '../../engine/options/encryption-settings.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { lockDataDir, UserError } from '../../platform/files.ts';
import { nodePlatform } from '../../platform/node-js.ts';
import { openLmdbStore } from '../../store/lmdb/lmdb-store.ts';
import { orOtherFolder } from '../kubeconfig/engine-folders.ts';

export interface DiscardOptions extends EncryptionOptions {
  dataDir: string;
  yes?: boolean;
}

/** Deletes the values only if `yes` is true. Rejects with a UserError if no engine has run in the folder, or if a process has locked it. */
export async function discard({ dataDir, yes = false, ...options }: DiscardOptions): Promise<void> {
  const record = readEngineRecord(dataDir);
  if (record === undefined)
    throw new UserError(
      lostText(dataDir) ?? `lifepod has never run in ${dataDir}: there is nothing to delete${orOtherFolder(dataDir)}`,
    );
  const lock = lockDataDir(dataDir);
  try {
    // This version could wrongly report values that a newer lifepod has encrypted in another way.
    checkDataFormat(dataDir);
    const store = await openLmdbStore({ directory: join(dataDir, 'store'), log: nodePlatform('error').log });
    try {
      const { encryptionProviderConfig: configFile } = resolveEncryptionOptions(options, record);
      const { encryptionProviderConfig: formerFile = '' } = record;
      const { lost, kept } = await discardUnreadable(store, { dataDir, configFile, formerFile }, yes);
      for (const [remedy, keys] of kept) {
        const values = keys.length === 1 ? 'this value is' : `these ${keys.length} values are`;
        process.stdout.write(`${keys.join('\n')}\n${values} not lost and will not be deleted: ${remedy}\n`);
      }
      for (const key of lost) process.stdout.write(`${key}\n`);
      if (lost.length > 0 || kept.size === 0) process.stdout.write(`${outcome(lost.length, yes)}\n`);
      if (kept.size === 0 && (lost.length === 0 || yes) && configFile !== formerFile)
        process.stdout.write(`start lifepod with ${keyOption(configFile)}\n`);
    } finally {
      await store.close();
    }
  } finally {
    lock.release();
  }
}

function outcome(count: number, deleted: boolean): string {
  if (count === 0) return 'all values of the store can be read: nothing to delete';
  const values = count === 1 ? 'this value' : `these ${count} values`;
  return deleted
    ? `deleted ${values}`
    : `${values} cannot be read: restore the key file, or repeat the command with --yes to delete ${count === 1 ? 'it' : 'them'}`;
}
