/**
 * The engine's own keys, in <data-dir>/encryption/keys.json: an EncryptionConfiguration that encrypts Secrets with aesgcm.
 *
 * Invariants:
 *  1. The folder has mode 0700, the file 0600. The file is replaced atomically, and a key is used only when the file is on the disk.
 *  2. The first key encrypts. All other keys, and the provider identity, only decrypt, and are in the file only until all values are
 *     encrypted with the first key.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ensurePrivateFolder, readTextIfPresent, UserError, writeFileAtomic } from '../../platform/files.ts';
import { syncFolder } from '../../platform/folders/written-file.ts';
import { keyNameOf } from './ciphers.ts';
import { type Configuration, parseConfiguration } from './configuration.ts';

const SECRET_BYTES = 32;

export const ENCRYPTED_RESOURCES: readonly string[] = ['secrets'];

export const keyFolder = (dataDir: string): string => join(dataDir, 'encryption');
export const keyFilePath = (dataDir: string): string => join(keyFolder(dataDir), 'keys.json');

/** Creates the folder if it is missing, and returns when it is on the disk. */
export function ensureKeyFolder(dataDir: string): void {
  ensurePrivateFolder(keyFolder(dataDir));
  syncFolder(dataDir);
}

/** Removes temporary files of killed processes, because the files may contain old keys. */
function removeLeftovers(dataDir: string): void {
  const folder = keyFolder(dataDir);
  for (const name of readdirSync(folder)) {
    if (/^keys\.json\.\d+\.new$/.test(name)) rmSync(join(folder, name), { force: true });
  }
}

interface Key {
  name: string;
  /** Base64. */
  secret: string;
}

interface Keys {
  keys: readonly Key[];
  /** Whether the file contains the provider identity, so that values that are not encrypted can be read. */
  readsPlain: boolean;
}

function newKey(): Key {
  const secret = randomBytes(SECRET_BYTES);
  return { name: keyNameOf(secret), secret: secret.toString('base64') };
}

function textOf({ keys, readsPlain }: Keys): string {
  const providers = [{ aesgcm: { keys } }, ...(readsPlain ? [{ identity: {} }] : [])];
  const resources = [{ resources: ENCRYPTED_RESOURCES, providers }];
  const configuration = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration', resources };
  return `${JSON.stringify(configuration, undefined, 2)}\n`;
}

/** `text`: a valid EncryptionConfiguration. Returns undefined if lifepod would have written the file differently. */
function keysIn(text: string): Keys | undefined {
  // YAML that is not JSON begins differently.
  if (!text.startsWith('{')) return undefined;
  const content = JSON.parse(text) as {
    resources: { providers: { aesgcm?: { keys: Key[] }; identity?: object }[] }[];
  };
  const providers = content.resources.flatMap((each) => each.providers);
  const keys = {
    keys: providers.flatMap(({ aesgcm }) => aesgcm?.keys ?? []),
    readsPlain: providers.some(({ identity }) => identity !== undefined),
  };
  return isDeepStrictEqual(content, JSON.parse(textOf(keys))) ? keys : undefined;
}

export class KeyFile {
  readonly path: string;
  #keys: Keys;
  #configuration: Configuration;

  private constructor(path: string, keys: Keys, configuration: Configuration) {
    this.path = path;
    this.#keys = keys;
    this.#configuration = configuration;
  }

  /** Resolves to undefined if there is no key file. Rejects with a UserError if the file is damaged, or was changed by a user. */
  static async read(dataDir: string): Promise<KeyFile | undefined> {
    const path = keyFilePath(dataDir);
    const text = readTextIfPresent(path);
    if (text === undefined) return undefined;
    const configuration = await parseConfiguration(text, path);
    const keys = keysIn(text);
    if (keys === undefined) {
      throw new UserError(
        `${path} has been changed: restore it from a backup, or copy it elsewhere and give the copy with --encryption-provider-config`,
      );
    }
    ensureKeyFolder(dataDir);
    removeLeftovers(dataDir);
    // The process that wrote the file may have been killed before the file was on the disk. Writing it again also restores its mode.
    writeFileAtomic(path, text);
    return new KeyFile(path, keys, configuration);
  }

  /** `readsPlain`: whether there are values that are not encrypted yet. */
  static async create(dataDir: string, readsPlain: boolean): Promise<KeyFile> {
    ensureKeyFolder(dataDir);
    const keys = { keys: [newKey()], readsPlain };
    const path = keyFilePath(dataDir);
    const file = new KeyFile(path, keys, await parseConfiguration(textOf(keys), path));
    writeFileAtomic(path, textOf(keys));
    return file;
  }

  get configuration(): Configuration {
    return this.#configuration;
  }

  /** Whether values may exist that the first key has not encrypted. */
  get isRotating(): boolean {
    return this.#keys.keys.length > 1 || this.#keys.readsPlain;
  }

  async addKey(): Promise<void> {
    const keys = { ...this.#keys, keys: [newKey(), ...this.#keys.keys] };
    const configuration = await parseConfiguration(textOf(keys), this.path);
    this.#write(keys);
    this.#configuration = configuration;
  }

  /**
   * Removes all keys except the first, and the provider identity, from the file. Call it only when the first key has encrypted all values.
   * `configuration` keeps the removed keys, because a listener of the store may still get an event with an older value.
   */
  dropOldKeys(): void {
    this.#write({ keys: this.#keys.keys.slice(0, 1), readsPlain: false });
  }

  #write(keys: Keys): void {
    writeFileAtomic(this.path, textOf(keys));
    this.#keys = keys;
  }
}
