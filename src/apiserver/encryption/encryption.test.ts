import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { delayWatch } from '../../store/delayed-watch-fixture.ts';
import { copyLmdbFile } from '../../store/lmdb/copy-file.ts';
import { openLmdbStore } from '../../store/lmdb/lmdb-store.ts';
import { StorageFullError, type Store, type StoredValue, type Txn } from '../../store/store.ts';
import { decodeStored } from '../cache/stored-object.ts';
import { aescbc } from './ciphers.ts';
import { discardUnreadable } from './discard.ts';
import type { UnreadableValueError } from './encrypted-store.ts';
import { type Encryption, openEncryptedStore } from './encryption.ts';
import { readConfiguration } from './read-configuration.ts';

const PREFIX = '/registry/core/secrets/default/';
const PASSWORD = 'correct-horse-battery-staple';
/** More values than are read or written at once. LMDB stores some of them in pages of their own. */
const COUNT = 620;

let dataDir: string;
let opened: Store[];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-encryption-'));
  opened = [];
});
afterEach(async () => {
  for (const store of opened) await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const keep = <T extends Store>(store: T): T => {
  opened.push(store);
  return store;
};
const openRaw = async (): Promise<Store> => keep(await openLmdbStore({ directory: join(dataDir, 'store') }));

interface Faults {
  /** May throw to make the write fail. */
  beforeWrite?: () => void;
  wrap?: (store: Store) => Store;
}

const forwarding = (store: Store): Store => ({
  revision: () => store.revision(),
  get: (...args) => store.get(...args),
  range: (options) => store.range(options),
  txn: (txn) => store.txn(txn),
  watch: (...args) => store.watch(...args),
  compact: (revision) => store.compact(revision),
  close: () => store.close(),
});

const open = (
  { beforeWrite = () => {}, wrap = (store) => store }: Faults = {},
  configFile = '',
  formerFile?: string,
): Promise<Encryption> =>
  openEncryptedStore({
    dataDir,
    configFile,
    formerFile,
    log: silentLog,
    openStore: async () => {
      const store = wrap(await openRaw());
      const write =
        <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
        async (...args: Args): Promise<Result> => {
          beforeWrite();
          return call(...args);
        };
      return {
        ...forwarding(store),
        txn: write((txn: Txn) => store.txn(txn)),
        compact: write((revision: number) => store.compact(revision)),
      };
    },
    copyFile: () => {
      beforeWrite();
      return copyLmdbFile(join(dataDir, 'store'));
    },
  });

const closeAll = async (): Promise<void> => {
  for (const store of opened.splice(0)) await store.close();
};

const nameOf = (index: number): string => `secret-${String(index).padStart(4, '0')}`;
const jsonOf = (index: number): string => {
  const password = `${PASSWORD}-${index}${index % 10 === 0 ? 'x'.repeat(3000) : ''}`;
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: nameOf(index), namespace: 'default', annotations: { note: PASSWORD } },
    data: { password: Buffer.from(password).toString('base64') },
  });
};

async function fill(store: Store, count = COUNT): Promise<void> {
  const indexes = Array.from({ length: count }, (_, index) => index);
  const write = (index: number) =>
    store.txn({ compare: [], puts: [{ key: PREFIX + nameOf(index), value: Buffer.from(jsonOf(index)) }] });
  await Promise.all(indexes.map(write));
  // The history and free pages of the store must contain values, too.
  await Promise.all(indexes.slice(0, 100).map(write));
}

async function expectAll(store: Store, count = COUNT): Promise<void> {
  const { items } = await store.range({ prefix: PREFIX });
  expect(items.map(({ value }) => Buffer.from(value).toString())).toEqual(
    Array.from({ length: count }, (_, index) => jsonOf(index)),
  );
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

const filesWithPasswords = (): string[] =>
  filesIn(dataDir).filter((path) => {
    const content = readFileSync(path);
    // The last characters depend on the bytes after the password.
    const encoded = Buffer.from(PASSWORD).toString('base64').slice(0, -3);
    return content.includes(PASSWORD) || content.includes(encoded);
  });

const keyFile = (): string => join(dataDir, 'encryption/keys.json');
const providers = (): { aesgcm?: { keys: { name: string; secret: string }[] }; identity?: object }[] =>
  JSON.parse(readFileSync(keyFile(), 'utf8')).resources[0].providers;
const keyNames = (): string[] => providers().flatMap(({ aesgcm }) => aesgcm?.keys.map(({ name }) => name) ?? []);

const failureOf = async (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => Promise.reject(new Error('expected a failure')),
    (error: Error) => error,
  );

test('a new data folder gets a private key file, and its values are encrypted from the first one on', async () => {
  const { store } = await open();
  expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
  expect(statSync(join(dataDir, 'encryption')).mode & 0o777).toBe(0o700);
  expect(providers().map((each) => Object.keys(each))).toEqual([['aesgcm']]);
  await fill(store);
  await expectAll(store);
  expect(filesWithPasswords()).toEqual([]);
  await closeAll();
  const raw = await openRaw();
  const { items } = await raw.range({ prefix: PREFIX });
  for (const { value } of items) {
    expect(Buffer.from(value).toString('latin1')).toMatch(new RegExp(`^k8s:enc:aesgcm:v2:${keyNames()[0]}:`));
  }
});

test('other kinds are not encrypted, and have the bytes that were written', async () => {
  const { store } = await open();
  const value = Buffer.from('{"kind":"ConfigMap"}');
  await store.txn({ compare: [], puts: [{ key: '/registry/core/configmaps/default/a', value }] });
  await closeAll();
  const stored = await (await openRaw()).get('/registry/core/configmaps/default/a');
  expect(Buffer.from(stored?.value ?? [])).toEqual(value);
});

test('the next start reads the values with the same key, and restores the mode of the files', async () => {
  const first = await open();
  await fill(first.store, 3);
  const before = readFileSync(keyFile());
  await closeAll();
  chmodSync(join(dataDir, 'encryption'), 0o755);
  chmodSync(keyFile(), 0o644);
  const { store } = await open();
  await expectAll(store, 3);
  expect(readFileSync(keyFile())).toEqual(before);
  expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
  expect(statSync(join(dataDir, 'encryption')).mode & 0o777).toBe(0o700);
});

test('a start removes the copies of keys that a killed process has left', async () => {
  await open();
  await closeAll();
  writeFileSync(join(dataDir, 'encryption/keys.json.4711.new'), readFileSync(keyFile()));
  await open();
  expect(readdirSync(join(dataDir, 'encryption'))).toEqual(['keys.json']);
});

test('the values of an older data folder are encrypted at the start, and the file has no rest of them', async () => {
  await fill(await openRaw());
  await closeAll();
  expect(filesWithPasswords()).toEqual([join(dataDir, 'store/data.mdb')]);
  const { store } = await open();
  expect(filesWithPasswords()).toEqual([]);
  expect(providers().map((each) => Object.keys(each))).toEqual([['aesgcm']]);
  await expectAll(store);
  const { revision } = await store.txn({ compare: [], puts: [{ key: `${PREFIX}new`, value: Buffer.from('{}') }] });
  expect(revision).toBe(store.revision());
});

test('Secrets that were deleted from an older data folder leave nothing in its files', async () => {
  const raw = await openRaw();
  await fill(raw, 70);
  await raw.txn({ compare: [], deletes: Array.from({ length: 70 }, (_, index) => PREFIX + nameOf(index)) });
  await closeAll();
  expect(filesWithPasswords()).toEqual([join(dataDir, 'store/data.mdb')]);
  const { store } = await open();
  await expectAll(store, 0);
  expect(filesWithPasswords()).toEqual([]);
});

test('a full disk does not prevent the start of an older data folder, whose values are encrypted at the next start', async () => {
  await fill(await openRaw(), 70);
  await closeAll();
  const storeIsFull = new StorageFullError(dataDir, 'the disk is full', 'free some space', undefined);
  const fileIsFull = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  // The disk is full in the first commit (with each of the errors), then between two values, during the deletion of the history, and during
  // the copy of the file. Each start continues the work of the previous one.
  for (const [allowed, error] of [
    [0, storeIsFull],
    [0, fileIsFull],
    [55, storeIsFull],
    [15, storeIsFull],
    [1, storeIsFull],
  ] as const) {
    let left = allowed;
    const beforeWrite = (): void => {
      if (left-- <= 0) throw error;
    };
    const { store } = await open({ beforeWrite });
    await expectAll(store, 70);
    expect(existsSync(join(dataDir, 'encryption/rewrite-due'))).toBe(true);
    await closeAll();
  }
  const { store } = await open();
  await expectAll(store, 70);
  expect(filesWithPasswords()).toEqual([]);
  expect(existsSync(join(dataDir, 'encryption/rewrite-due'))).toBe(false);
});

describe('rotateKey()', () => {
  test('rotateKey() fails with 507 on a full disk, after which the values can be read and the rotation can be repeated', async () => {
    let isFull = false;
    const beforeWrite = (): void => {
      if (isFull) throw new StorageFullError(dataDir, 'the disk is full', 'free some space', undefined);
    };
    const { store, rotateKey } = await open({ beforeWrite });
    await fill(store, 3);
    isFull = true;
    expect(await failureOf(rotateKey())).toMatchObject({
      code: 507,
      message: `a new key encrypts new values, but the rotation is not complete, so the old key remains: cannot write to the store in ${dataDir}: the disk is full; free some space`,
    });
    await expectAll(store, 3);
    isFull = false;
    expect(await rotateKey()).toBe(3);
    expect(keyNames()).toHaveLength(1);
  });

  test('rotateKey() on a full disk names the file that cannot be written, and says whether the key has changed', async () => {
    const { store, rotateKey } = await open();
    await fill(store, 3);
    const [old] = keyNames();
    const path = join(dataDir, 'encryption/keys.json');
    // A write to the temporary file fails as on a full disk.
    symlinkSync('/dev/full', `${path}.${process.pid}.new`);
    expect(await failureOf(rotateKey())).toMatchObject({
      code: 507,
      message: `the key has not changed: ${path} cannot be written: the disk is full; free some space and try again`,
    });
    expect(keyNames()).toEqual([old]);
    expect(await rotateKey()).toBe(3);
  });

  test('rotateKey() encrypts all values with a new key, removes the old one, and leaves the values unchanged', async () => {
    const { store, rotateKey } = await open();
    await fill(store);
    const [old] = keyNames();
    expect(await rotateKey()).toBe(COUNT);
    await expectAll(store);
    expect(keyNames()).toHaveLength(1);
    expect(keyNames()).not.toContain(old);
    expect(filesWithPasswords()).toEqual([]);
    await closeAll();
    const again = await open();
    await expectAll(again.store);
    // The start has copied the store, so that no value of the old key is left in unused space.
    for (const path of filesIn(dataDir)) expect(readFileSync(path).includes(`:${old}:`), path).toBe(false);
    expect(existsSync(join(dataDir, 'encryption/rewrite-due'))).toBe(false);
  });

  test('rotateKey() loses no write that runs at the same time', async () => {
    const { store, rotateKey } = await open();
    await fill(store, 300);
    const rotated = rotateKey();
    const writes: Promise<unknown>[] = [];
    for (let index = 250; index < 400; index++) {
      const value = Buffer.from(jsonOf(index));
      writes.push(store.txn({ compare: [], puts: [{ key: PREFIX + nameOf(index), value }] }));
      if (index % 10 === 0) await new Promise(setImmediate);
    }
    await Promise.all([...writes, rotated]);
    await expectAll(store, 400);
    await closeAll();
    const { store: again } = await open();
    await expectAll(again, 400);
    expect(keyNames()).toHaveLength(1);
  });

  test('after a killed rotation, the history has no value of an old key, even if all Secrets were deleted before', async () => {
    let isKilled = false;
    const beforeWrite = (): void => {
      if (isKilled) throw new Error('killed');
    };
    const { store, rotateKey } = await open({ beforeWrite });
    await fill(store, 1);
    const before = store.revision();
    await store.txn({ compare: [], deletes: [PREFIX + nameOf(0)] });
    isKilled = true;
    await failureOf(rotateKey());
    await closeAll();
    expect(keyNames()).toHaveLength(2);
    const again = await open();
    expect(keyNames()).toHaveLength(1);
    expect((await failureOf(again.store.get(PREFIX + nameOf(0), before))).name).toBe('CompactedError');
  });

  test('concurrent calls of rotateKey() share one rotation', async () => {
    const { store, rotateKey } = await open();
    await fill(store, 3);
    expect(await Promise.all([rotateKey(), rotateKey()])).toEqual([3, 3]);
    expect(await rotateKey()).toBe(3);
  });

  test('events of values with the old key that arrive after the rotation can be read', async () => {
    const undelivered: (() => void)[] = [];
    const { store, rotateKey } = await open({
      // Copies the values of events, as a store in another process would.
      wrap: (raw) => {
        const watch: Store['watch'] = (prefix, after, listener) =>
          raw.watch(prefix, after, (events) => listener(structuredClone(events)));
        return delayWatch({ ...forwarding(raw), watch }, (deliver) => void undelivered.push(deliver));
      },
    });
    const seen: string[] = [];
    store.watch(PREFIX, undefined, (events) => {
      for (const event of events) if (event.type === 'put') seen.push(Buffer.from(event.kv.value).toString());
    });
    await fill(store, 3);
    await rotateKey();
    for (const deliver of undelivered) deliver();
    expect(seen).toEqual([...[0, 1, 2], ...[0, 1, 2], ...[0, 1, 2]].map(jsonOf));
  });

  test('rotateKey() does not end watches, and reads of older revisions then get a CompactedError', async () => {
    const { store, rotateKey } = await open();
    await fill(store, 3);
    const before = store.revision();
    const seen: string[] = [];
    store.watch(PREFIX, undefined, (events) => {
      for (const event of events) if (event.type === 'put') seen.push(Buffer.from(event.kv.value).toString());
    });
    await rotateKey();
    expect(seen).toEqual([0, 1, 2].map(jsonOf));
    expect((await failureOf(store.get(`${PREFIX}${nameOf(0)}`, before))).name).toBe('CompactedError');
  });
});

test.each([
  ['the encryption of an older data folder', async () => fill(await openRaw(), 70), async () => {}],
  [
    'a rotation',
    async () => fill((await open()).store, 70),
    async ({ rotateKey }: Encryption) => void (await rotateKey()),
  ],
])('%s continues at the next start after a crash before any write', async (_, prepare, act) => {
  await prepare();
  await closeAll();
  let crashes = 0;
  for (let allowed = 0; ; allowed += allowed < 8 ? 1 : 9) {
    let left = allowed;
    const beforeWrite = (): void => {
      if (left-- <= 0) throw new Error('killed');
    };
    const ended = await open({ beforeWrite })
      .then(act)
      .then(
        () => true,
        () => false,
      );
    await closeAll();
    if (ended) break;
    crashes++;
  }
  expect(crashes).toBeGreaterThan(2);
  const { store } = await open();
  await expectAll(store, 70);
  expect(keyNames()).toHaveLength(1);
  expect(providers()).toHaveLength(1);
  expect(filesWithPasswords()).toEqual([]);
});

describe('a start without the right key fails with a sentence, and changes nothing', () => {
  beforeEach(async () => {
    await fill((await open()).store, 3);
    await closeAll();
  });

  const startFails = async (): Promise<string> => {
    const before = existsSync(keyFile()) ? readFileSync(keyFile(), 'utf8') : undefined;
    const error = await failureOf(
      open().then(({ store }) => store.range({ prefix: PREFIX }).then(({ items }) => items[0]?.value)),
    );
    await closeAll();
    expect(existsSync(keyFile()) ? readFileSync(keyFile(), 'utf8') : undefined).toBe(before);
    expect(error).toBeInstanceOf(UserError);
    return error.message.replaceAll(dataDir, 'DIR');
  };

  test('a start whose key file is missing fails with one sentence, and changes nothing', async () => {
    rmSync(join(dataDir, 'encryption'), { recursive: true });
    expect(await startFails()).toBe(
      'the key file DIR/encryption/keys.json is missing, and the store has values that are encrypted with its keys, such as ' +
        `${PREFIX}${nameOf(0)}: restore the file from a backup. If it is lost, '${rootCommand('secrets discard', 'DIR')}' deletes these values`,
    );
  });

  test('a start with the key file of another data folder fails with one sentence, and changes nothing', async () => {
    const text = readFileSync(keyFile(), 'utf8');
    rmSync(join(dataDir, 'store'), { recursive: true });
    rmSync(keyFile());
    await fill((await open()).store, 3);
    await closeAll();
    writeFileSync(keyFile(), text);
    expect(await startFails()).toBe(
      `the value of ${PREFIX}${nameOf(0)} in the store cannot be read (no matching key was found for the provided AES-GCM transformer): ` +
        'its key is not in DIR/encryption/keys.json, or the value is damaged. Restore this file or the data folder from a backup; ' +
        `'${rootCommand('secrets discard', 'DIR')}' deletes the values that cannot be read`,
    );
  });

  test('a start with a damaged key file fails with one sentence, and changes nothing', async () => {
    writeFileSync(keyFile(), readFileSync(keyFile(), 'utf8').slice(0, 50));
    expect(await startFails()).toBe(
      'DIR/encryption/keys.json is not a valid EncryptionConfiguration: it is neither YAML nor JSON (SyntaxError); correct the file, or restore it from a backup',
    );
  });

  test.each([
    ['has another resource', (text: string) => text.replace('"secrets"', '"configmaps"')],
    [
      'is YAML',
      () =>
        `apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: [secrets], providers: [{identity: {}}]}]\n`,
    ],
  ])('the file %s', async (_, change) => {
    writeFileSync(keyFile(), change(readFileSync(keyFile(), 'utf8')));
    expect(await startFails()).toBe(
      'DIR/encryption/keys.json has been changed: restore it from a backup, or copy it elsewhere and give the copy with --encryption-provider-config',
    );
  });

  test('discard lists the values without their key, deletes them on request, and the next start creates a key', async () => {
    rmSync(join(dataDir, 'encryption'), { recursive: true });
    const raw = await openRaw();
    const keys = [0, 1, 2].map((index) => PREFIX + nameOf(index));
    const source = { dataDir, configFile: '' };
    const kept = new Map();
    expect(await discardUnreadable(raw, source, false)).toEqual({ lost: keys, kept });
    expect(await discardUnreadable(raw, source, true)).toEqual({ lost: keys, kept });
    expect(await discardUnreadable(raw, source, true)).toEqual({ lost: [], kept });
    await closeAll();
    const { store } = await open();
    await expectAll(store, 0);
  });
});

describe('with the configuration of an administrator', () => {
  const path = (): string => join(dataDir, 'config.json');
  const write = (...list: object[]): void =>
    writeFileSync(
      path(),
      JSON.stringify({
        apiVersion: 'apiserver.config.k8s.io/v1',
        kind: 'EncryptionConfiguration',
        resources: [{ resources: ['secrets'], providers: list }],
      }),
    );
  const gcm = (byte: number) => ({
    aesgcm: { keys: [{ name: `key${byte}`, secret: Buffer.alloc(32, byte).toString('base64') }] },
  });

  test('the first provider encrypts, a start encrypts again what another has written, and the file is never changed', async () => {
    write(gcm(1));
    await fill((await open({}, path())).store, 3);
    await closeAll();
    for (const list of [[gcm(2), gcm(1)], [gcm(2)], [{ identity: {} }, gcm(2)], [gcm(3), { identity: {} }], [gcm(3)]]) {
      write(...list);
      const before = readFileSync(path());
      const { store, rotateKey } = await open({}, path());
      await expectAll(store, 3);
      expect(readFileSync(path())).toEqual(before);
      expect((await failureOf(rotateKey())).message).toContain(
        `the keys are in ${path()}, which lifepod does not change`,
      );
      await closeAll();
    }
    expect(existsSync(keyFile())).toBe(false);
    expect(filesWithPasswords()).toEqual([]);
  });

  test('a missing file causes an error that is one sentence', async () => {
    const error = await failureOf(open({}, path()));
    expect(error).toBeInstanceOf(UserError);
    const missing = `--encryption-provider-config ${path()} does not exist`;
    expect(error.message).toMatch(`${missing}: restore the file, because the stored Secrets cannot be read without it`);
    await expect(readConfiguration('/d', path(), false)).rejects.toThrow(
      `${missing}: give a file with an EncryptionConfiguration`,
    );
  });

  test('a start with a removed key fails before it writes', async () => {
    write(gcm(1));
    await fill((await open({}, path())).store, 3);
    await closeAll();
    write(gcm(2));
    const error = await failureOf(open({}, path()));
    expect(error).toBeInstanceOf(UserError);
    expect(error.message).toContain('no matching key was found for the provided AES-GCM transformer');
  });

  const cbc = (secret: Buffer) => ({ aescbc: { keys: [{ name: 'cbc', secret: secret.toString('base64') }] } });

  /** Encrypts a value with aescbc, and resolves to a wrong key that nevertheless decrypts the value, to bytes that are not JSON. */
  async function misleadingKey(): Promise<Buffer> {
    write(cbc(Buffer.alloc(32)));
    await fill((await open({}, path())).store, 1);
    await closeAll();
    const raw = await openRaw();
    const { value = Buffer.of() } = (await raw.get(PREFIX + nameOf(0))) ?? {};
    await closeAll();
    const secret = Buffer.alloc(32);
    const isMisleading = (): boolean => {
      try {
        return aescbc('cbc', secret).decrypt(PREFIX, value).length > 0;
      } catch {
        return false;
      }
    };
    // The padding is valid by chance for each 256th key.
    for (let number = 1; number === 1 || !isMisleading(); number++) secret.writeUInt32LE(number);
    return secret;
  }

  test('a value that a wrong key decrypts to something other than JSON is not encrypted again, and can be discarded', async () => {
    write(gcm(2), cbc(await misleadingKey()));
    const problem = `the value of ${PREFIX}${nameOf(0)} in the store cannot be read (the value is not JSON)`;
    expect(await failsToOpen(path())).toContain(
      `${problem}: its key is not in DIR/config.json, or the value is damaged`,
    );
    write(cbc(Buffer.alloc(32)));
    await expectAll((await open({}, path())).store, 1);
    await closeAll();
    write(cbc(await misleadingKey()));
    expect(await discarded()).toEqual({ lost: [PREFIX + nameOf(0)], kept: new Map() });
  });

  test('the file with the key of a value that a wrong key decrypts is found after the start has read the value', async () => {
    const wrong = await misleadingKey();
    mkdirSync(join(dataDir, 'encryption'), { recursive: true });
    writeFileSync(keyFile(), readFileSync(path()));
    rmSync(join(dataDir, 'encryption/rewrite-due'), { force: true });
    write(cbc(wrong));
    const { store, explain } = await open({}, path(), path());
    const stored = await store.get(PREFIX + nameOf(0));
    const error = await failureOf(Promise.resolve(stored as StoredValue).then(decodeStored));
    expect((await explain(error as UnreadableValueError)).message).toContain(`but in ${keyFile()}: add that key to`);
  });

  const CONFIG_MAP = '/registry/core/configmaps/default/c';
  const ownProvider = () => providers()[0] ?? {};
  const failsToOpen = async (configFile: string, formerFile?: string): Promise<string> => {
    const error = await failureOf(open({}, configFile, formerFile));
    expect(error).toBeInstanceOf(UserError);
    await closeAll();
    return error.message.replaceAll(dataDir, 'DIR');
  };
  const discarded = async (): Promise<object> => {
    const result = await discardUnreadable(await openRaw(), { dataDir, configFile: path() }, true);
    await closeAll();
    return result;
  };

  test('a start that cannot read a plain value encrypts no other value again, and says that identity is missing', async () => {
    const { store } = await open();
    await fill(store, 3);
    await store.txn({ compare: [], puts: [{ key: CONFIG_MAP, value: Buffer.from('{}') }] });
    const revision = store.revision();
    await closeAll();
    const resources = ['secrets', 'configmaps'];
    write(gcm(1), ownProvider());
    writeFileSync(path(), readFileSync(path(), 'utf8').replace('["secrets"]', JSON.stringify(resources)));
    const remedy =
      'add identity to DIR/config.json as the last provider of the resource of such values, so that lifepod reads and encrypts them';
    expect(await failsToOpen(path())).toBe(
      `the value of ${CONFIG_MAP} in the store is not encrypted, but DIR/config.json has no provider identity for it: ${remedy}`,
    );
    expect(await discarded()).toEqual({ lost: [], kept: new Map([[remedy.replace('DIR', dataDir), [CONFIG_MAP]]]) });
    const again = await open();
    expect(again.store.revision()).toBe(revision);
    await expectAll(again.store, 3);
    await closeAll();
    write(gcm(1), ownProvider(), { identity: {} });
    writeFileSync(path(), readFileSync(path(), 'utf8').replace('["secrets"]', JSON.stringify(resources)));
    await expectAll((await open({}, path())).store, 3);
  });

  test('a value whose key is in the key file of the data folder is not lost, and the error says what to do', async () => {
    await fill((await open()).store, 3);
    await closeAll();
    write(gcm(1));
    const remedy =
      "add that key to DIR/config.json after the new one, or start lifepod with --encryption-provider-config ''";
    expect(await failsToOpen(path())).toBe(
      `the value of ${PREFIX}${nameOf(0)} in the store is encrypted with a key that is not in DIR/config.json for this resource, but in DIR/encryption/keys.json: ${remedy}`,
    );
    const keys = [0, 1, 2].map((index) => PREFIX + nameOf(index));
    expect(await discarded()).toEqual({ lost: [], kept: new Map([[remedy.replace('DIR', dataDir), keys]]) });
    await expectAll((await open()).store, 3);
  });

  test('a start with another file reads all values, also if none must be encrypted again', async () => {
    const former = join(dataDir, 'former.json');
    write(gcm(1));
    writeFileSync(former, readFileSync(path(), 'utf8').replace('["secrets"]', '["secrets","configmaps"]'));
    const { store } = await open({}, former);
    await store.txn({ compare: [], puts: [{ key: CONFIG_MAP, value: Buffer.from('{}') }] });
    await closeAll();
    expect(await failsToOpen(path(), former)).toContain(
      `the value of ${CONFIG_MAP} in the store is encrypted with a key that is not in DIR/config.json for this resource, but in DIR/former.json`,
    );
  });

  test('a value whose resource was removed from the file with its key is not lost, and the error says what to do', async () => {
    write(gcm(1));
    const text = readFileSync(path(), 'utf8');
    writeFileSync(path(), text.replace('["secrets"]', '["secrets","configmaps"]'));
    const { store } = await open({}, path());
    await store.txn({ compare: [], puts: [{ key: CONFIG_MAP, value: Buffer.from('{}') }] });
    await closeAll();
    writeFileSync(path(), text);
    const remedy = 'add the resource of such values to the resources of this key in DIR/config.json';
    expect(await failsToOpen(path())).toBe(
      `the value of ${CONFIG_MAP} in the store is encrypted with a key that DIR/config.json has only for other resources: ${remedy}`,
    );
    expect(await discarded()).toEqual({ lost: [], kept: new Map([[remedy.replace('DIR', dataDir), [CONFIG_MAP]]]) });
  });

  const contents = () => filesIn(dataDir).map((file) => [file, readFileSync(file, 'latin1')]);

  test('a value whose key is in a key file that a user has changed is not lost, and finding this out changes no file', async () => {
    await fill((await open()).store, 3);
    await closeAll();
    write(gcm(1));
    writeFileSync(keyFile(), JSON.stringify(JSON.parse(readFileSync(keyFile(), 'utf8')), undefined, 4));
    writeFileSync(`${keyFile()}.4711.new`, '');
    const before = contents();
    expect(await failsToOpen(path())).toContain(
      'is encrypted with a key that is not in DIR/config.json for this resource, but in',
    );
    expect(await discarded()).toMatchObject({ lost: [] });
    const source = { dataDir, configFile: '' };
    expect(await discardUnreadable(await openRaw(), source, true)).toEqual({ lost: [], kept: new Map() });
    await closeAll();
    expect(contents()).toEqual(before);
  });

  test('no value is lost while a file that may have its key is damaged', async () => {
    await fill((await open()).store, 3);
    await closeAll();
    write(gcm(1));
    writeFileSync(keyFile(), readFileSync(keyFile(), 'utf8').slice(0, 50));
    const invalid =
      'DIR/encryption/keys.json is not a valid EncryptionConfiguration: it is neither YAML nor JSON (SyntaxError); correct the file, or restore it from a backup';
    expect(await failsToOpen(path())).toBe(
      `the value of ${PREFIX}${nameOf(0)} in the store cannot be read (no matching key was found for the provided AES-GCM transformer): ` +
        `its key is not in DIR/config.json, and another file that may have it cannot be used: ${invalid}`,
    );
    const error = await failureOf(discarded());
    expect(error).toBeInstanceOf(UserError);
    expect(error.message).toBe(invalid.replace('DIR', dataDir));
  });

  test.each(['', '/lost/config.json'])(
    'the advice to discard names the new file if the former one is %o',
    async (formerFile) => {
      write(gcm(1));
      await fill((await open({}, path())).store, 1);
      await closeAll();
      write(gcm(2));
      const command = (file: string) => rootCommand(`secrets discard --encryption-provider-config ${file}`, 'DIR');
      if (formerFile !== '') expect(await failsToOpen('', formerFile)).toContain(`'${command("''")}' deletes`);
      expect(await failsToOpen(path(), formerFile)).toContain(`'${command('DIR/config.json')}' deletes`);
    },
  );

  test.each([
    ['has another key', async () => void (await open())],
    ['is missing', async () => {}],
  ])('the error names the file of the last start if the key file of the data folder %s', async (_, prepare) => {
    await prepare();
    await closeAll();
    write(gcm(1));
    await fill((await open({}, path())).store, 3);
    await closeAll();
    expect(await failsToOpen('', path())).toBe(
      `the value of ${PREFIX}${nameOf(0)} in the store is encrypted with a key that is not in DIR/encryption/keys.json for this resource, but in DIR/config.json: start lifepod with --encryption-provider-config DIR/config.json`,
    );
  });

  test('a plain value that the key file of the data folder does not admit is not lost, and the error says what to do', async () => {
    await open();
    await closeAll();
    await fill(await openRaw(), 1);
    await closeAll();
    expect(await failsToOpen('')).toBe(
      `the value of ${PREFIX}${nameOf(0)} in the store is not encrypted, but DIR/encryption/keys.json has no provider identity for it: add identity as the last provider to a copy of DIR/encryption/keys.json, and start lifepod with --encryption-provider-config COPY, which encrypts such values`,
    );
  });
});
