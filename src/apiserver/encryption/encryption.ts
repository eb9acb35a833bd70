/**
 * Opens the store with encryption at rest, and replaces its keys. The keys are in a file of the data folder (key-file.ts), or in a file of
 * the administrator (--encryption-provider-config), which lifepod never changes.
 *
 * Invariants:
 *  1. No value is encrypted with a key that is not on the disk.
 *  2. No key is removed while a value, including values in the history of the store, is encrypted with it.
 *  3. A first key is created only if the store has no encrypted value.
 *  4. A start writes nothing before it has read all values with the current keys, so that a refused start changes nothing.
 *  5. Each step can be repeated after a crash: the next start continues a rotation, and encrypts values that are not encrypted yet.
 *  6. After values have been encrypted again, a start copies the store to a new file, because unused space of the old file may still
 *     contain the old values. The file `rewrite-due` in the folder of the keys records this before the first value is written.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { badRequest, insufficientStorage } from '../../machinery/status.ts';
import { UserError, writeFileAtomic } from '../../platform/files.ts';
import { isDiskFull } from '../../platform/folders/written-file.ts';
import type { Log } from '../../platform/platform.ts';
import { StorageFullError, type Store, type StoredValue } from '../../store/store.ts';
import { REGISTRY_PREFIX, resourcePrefix } from '../cache/keys.ts';
import { beginsWith, ENCRYPTED } from './ciphers.ts';
import type { Configuration } from './configuration.ts';
import { type EncryptedStore, encryptedStore, UnreadableValueError } from './encrypted-store.ts';
import { ENCRYPTED_RESOURCES, ensureKeyFolder, KeyFile, keyFilePath, keyFolder } from './key-file.ts';
import { discardCommand, readConfiguration } from './read-configuration.ts';
import { rewriteValues } from './rewrite-values.ts';
import { createDiagnosis, type KeySource, unreadable, unreadableValues } from './unreadable-values.ts';

export interface EncryptionOptions extends KeySource {
  /** Called before a value is encrypted again, when all values can be read: from then on, reading them may need `configFile`. */
  beforeWrite?: () => void;
  /** Called again after copyFile(). */
  openStore: () => Promise<Store>;
  /** Copies the content of the closed store to a new file, which replaces the old one. */
  copyFile: () => Promise<void>;
  log: Log;
}

export interface Encryption {
  /** The store, which encrypts the values that it writes, and returns decrypted values. */
  store: Store;
  /**
   * Creates a new key, encrypts all values with it, and removes the old keys. Resolves to the number of values. Concurrent calls share one
   * rotation. Rejects with 400 if the keys are the administrator's, with 500 if a value cannot be read, and with 507 if the disk is full. A
   * failed rotation can be repeated.
   */
  rotateKey(): Promise<number>;
  /** Resolves to the error that says what the user can do about a value of `store` that cannot be read. */
  explain(error: UnreadableValueError): Promise<UserError>;
}

/**
 * Encrypts the values that are not encrypted with the current key. Rejects with a UserError if the keys or a value of the store cannot be
 * read, and with the errors of openStore().
 */
export async function openEncryptedStore(options: EncryptionOptions): Promise<Encryption> {
  const { dataDir, configFile } = options;
  let raw = await options.openStore();
  try {
    let keys = configFile === '' ? await ownKeys(options, raw) : undefined;
    const given = keys === undefined ? await readConfiguration(dataDir, configFile) : undefined;
    const configuration = (): Configuration => (given ?? keys?.configuration) as Configuration;
    const isComplete = await encryptAll(options, raw, configuration(), keys);
    // encryptAll() may have removed keys from the file. These keys must not decrypt values from now on.
    keys &&= await KeyFile.read(dataDir);
    if (isComplete && existsSync(dueFile(dataDir))) {
      await raw.close();
      await copyStore(options);
      raw = await options.openStore();
    }
    const store = encryptedStore(raw, (key) => configuration().transformerFor(key));
    const explain = async ({ key, problem, stored }: UnreadableValueError): Promise<UserError> => {
      // The value in the error may have been decrypted with a wrong key, while only the encrypted value shows which key is the right one.
      const { value = stored } = (await raw.get(key)) ?? {};
      return unreadable(options, new UnreadableValueError(key, problem, value));
    };
    const rotateKey = keys === undefined ? refusal(configFile) : rotations(dataDir, raw, store, keys);
    return { store, rotateKey, explain };
  } catch (error) {
    await raw.close();
    throw error;
  }
}

const refusal = (configFile: string) => async (): Promise<never> => {
  throw badRequest(
    `the keys are in ${configFile}, which lifepod does not change: add a new key there as the first one, restart lifepod, and remove the old key`,
  );
};

function rotations(dataDir: string, raw: Store, store: EncryptedStore, keys: KeyFile): () => Promise<number> {
  let running: Promise<number> | undefined;
  const run = async (): Promise<number> => {
    const { configuration } = keys;
    try {
      return await rotate(dataDir, raw, store, keys);
    } catch (error) {
      throw isFull(error) ? insufficientStorage(fullText(error, keys.configuration !== configuration)) : error;
    } finally {
      running = undefined;
    }
  };
  return () => {
    running ??= run();
    return running;
  };
}

const isFull = (error: unknown): boolean => error instanceof StorageFullError || isDiskFull(error);

function fullText(error: unknown, hasNewKey: boolean): string {
  const { message, path = 'a file' } = error as NodeJS.ErrnoException;
  const cause =
    error instanceof StorageFullError
      ? message
      : `${path} cannot be written: the disk is full; free some space and try again`;
  const outcome = hasNewKey
    ? 'a new key encrypts new values, but the rotation is not complete, so the old key remains'
    : 'the key has not changed';
  return `${outcome}: ${cause}`;
}

const dueFile = (dataDir: string): string => join(keyFolder(dataDir), 'rewrite-due');

function markDue(dataDir: string): void {
  ensureKeyFolder(dataDir);
  writeFileAtomic(dueFile(dataDir), '');
}

/** Creates the first key if there is none. Rejects with a UserError if the store nevertheless has an encrypted value. */
async function ownKeys(options: EncryptionOptions, store: Store): Promise<KeyFile> {
  const { dataDir, configFile, formerFile = '' } = options;
  const existing = await KeyFile.read(dataDir);
  if (existing !== undefined) return existing;
  const { encrypted, plain } = await survey(store);
  if (encrypted !== undefined) {
    const error = new UnreadableValueError(encrypted.key, 'no key', encrypted.value);
    if ((await createDiagnosis(options))(error) !== 'lost') throw await unreadable(options, error);
    throw new UserError(
      `the key file ${keyFilePath(dataDir)} is missing, and the store has values that are encrypted with its keys, such as ${encrypted.key}: ` +
        `restore the file from a backup. If it is lost, '${discardCommand(dataDir, configFile, formerFile)}' deletes these values`,
    );
  }
  // The history and the unused space of the store may still contain deleted Secrets that are not encrypted.
  if (store.revision() > 0) markDue(dataDir);
  return KeyFile.create(dataDir, plain);
}

/**
 * `encrypted`: an encrypted value. `plain`: whether there are Secrets that are not encrypted. Stops at the first encrypted
 * value.
 */
async function survey(store: Store): Promise<{ encrypted: StoredValue | undefined; plain: boolean }> {
  const prefixes = ENCRYPTED_RESOURCES.map((plural) => resourcePrefix('', plural));
  let plain = false;
  let after: string | undefined;
  for (let remaining = 1; remaining > 0; ) {
    const page = await store.range({ prefix: REGISTRY_PREFIX, after, limit: 500 });
    for (const kv of page.items) {
      if (beginsWith(kv.value, ENCRYPTED)) return { encrypted: kv, plain };
      plain ||= prefixes.some((prefix) => kv.key.startsWith(prefix));
    }
    ({ remaining } = page);
    after = page.items.at(-1)?.key;
  }
  return { encrypted: undefined, plain };
}

/**
 * Encrypts the values that the first cipher has not encrypted, and removes the keys that are no longer needed. Resolves to false if the
 * disk is too full: the engine still starts, and the next start tries again.
 */
async function encryptAll(
  options: EncryptionOptions,
  store: Store,
  configuration: Configuration,
  keys: KeyFile | undefined,
): Promise<boolean> {
  const { dataDir, configFile, formerFile = '', beforeWrite, log } = options;
  let checked: Promise<void> | undefined;
  const check = (): Promise<void> => {
    checked ??= checkValues(store, configuration);
    return checked;
  };
  try {
    // The caches read only a part of the values, and later than this function removes the history and old keys.
    if (configFile !== formerFile || existsSync(dueFile(dataDir)) || keys?.isRotating) await check();
    const rewritten = await rewriteValues(store, configuration, async () => {
      await check();
      beforeWrite?.();
      markDue(dataDir);
    });
    if (rewritten > 0) log.info('encrypted stored values with the current key', { values: rewritten });
    // The history may contain old values, such as deleted ones, that are not encrypted with the first key.
    if (existsSync(dueFile(dataDir)) || keys?.isRotating) await store.compact(store.revision());
    if (keys?.isRotating) keys.dropOldKeys();
    return true;
  } catch (error) {
    if (error instanceof UnreadableValueError) throw await unreadable(options, error);
    if (!isFull(error)) throw error;
    log.warn('stored values are not encrypted with the current key yet', { error: (error as Error).message });
    return false;
  }
}

/** Rejects with an UnreadableValueError if a value cannot be read. */
async function checkValues(store: Store, configuration: Configuration): Promise<void> {
  for await (const error of unreadableValues(store, configuration)) throw error;
}

async function copyStore({ dataDir, copyFile, log }: EncryptionOptions): Promise<void> {
  try {
    await copyFile();
    rmSync(dueFile(dataDir), { force: true });
  } catch (error) {
    if (!(error instanceof StorageFullError)) throw error;
    log.warn('unused space of the store may still contain old values', { error: error.message });
  }
}

async function rotate(dataDir: string, raw: Store, store: EncryptedStore, keys: KeyFile): Promise<number> {
  // A failed rotation may have already added a key. A further key does no harm.
  await keys.addKey();
  await store.settled();
  const rewritten = await rewriteValues(raw, keys.configuration, () => markDue(dataDir));
  await raw.compact(raw.revision());
  keys.dropOldKeys();
  return rewritten;
}
