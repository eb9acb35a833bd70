/** The disks are tmpfs, and ext4, which allocates the blocks of a file only when it writes the data back. */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { forgetOwner } from '../../src/engine/data-folder/lock-line.ts';
import { dataDirOwner, lockDataDir } from '../../src/platform/files.ts';
import { copyLmdbFile } from '../../src/store/lmdb/copy-file.ts';
import { openLmdbStore } from '../../src/store/lmdb/lmdb-store.ts';
import { StorageFullError, type Store, type Txn } from '../../src/store/store.ts';

const MEBIBYTE = 2 ** 20;
const put = (key: string, bytes: number): Txn => ({ compare: [], puts: [{ key, value: Buffer.alloc(bytes, 65) }] });
const remove = (key: string): Txn => ({ compare: [], deletes: [key] });

let scratch: string;
let disk: string;
let folder: string;
/** A file on the same disk, which a test enlarges to fill the disk. */
let filler: string;
let opened: Store[];
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'lifepod-full-disk-'));
  disk = join(scratch, 'disk');
  folder = join(disk, 'store');
  filler = join(disk, 'filler');
  opened = [];
  mkdirSync(disk);
});
afterEach(async () => {
  for (const store of opened) await store.close();
  execFileSync('umount', ['-l', disk]);
  rmSync(scratch, { recursive: true, force: true });
});

async function open(): Promise<Store> {
  const store = await openLmdbStore({ directory: folder });
  opened.push(store);
  return store;
}

const inMemory = (mebibytes: number): void =>
  void execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', disk]);

function onExt4(mebibytes: number): void {
  const image = join(scratch, 'image');
  writeFileSync(image, '');
  truncateSync(image, mebibytes * MEBIBYTE);
  execFileSync('mkfs.ext4', ['-q', image]);
  execFileSync('mount', ['-o', 'loop', image, disk]);
}

/** Writes values until the data file has no space left beyond its reserve. Resolves with the number of values. */
async function untilFull(store: Store, ...lengths: number[]): Promise<number> {
  let count = 0;
  for (const length of lengths) {
    const fill = async (): Promise<void> => {
      for (; ; count++) await store.txn(put(`/${count}`, length));
    };
    await expect(fill()).rejects.toBeInstanceOf(StorageFullError);
  }
  return count;
}

function fillMore(bytes: number): boolean {
  try {
    appendFileSync(filler, Buffer.alloc(bytes, 1));
    return true;
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
    return false;
  }
}

type Outcome = { key: string; revision: number } | { refused: string };

/** Fills the disk while the writer writes. Calls `onWritten` for each accepted write, and resolves after `refusals` refused writes. */
async function untilRefused(
  writer: ChildProcess,
  refusals: number,
  onWritten: (key: string, revision: number) => void,
) {
  let isFilling = true;
  let outcomes = 0;
  let refused = 0;
  await new Promise<void>((resolve, reject) => {
    writer.once('exit', (code, signal) => reject(new Error(`the writer ended unexpectedly: ${code ?? signal}`)));
    writer.on('message', (outcome: Outcome) => {
      if (++outcomes % 10 === 0 && isFilling) isFilling = fillMore(MEBIBYTE);
      if ('key' in outcome) return onWritten(outcome.key, outcome.revision);
      expect(outcome.refused).toContain('the disk is full; free some space and try again');
      if (++refused === refusals) resolve();
    });
  });
  writer.removeAllListeners('exit');
}

describe.each([
  { name: 'tmpfs', mount: inMemory },
  { name: 'ext4', mount: onExt4 },
])('on $name', ({ mount }) => {
  test('an engine that has stopped can lock its data folder again after the disk has become full', () => {
    mount(8);
    mkdirSync(folder, { mode: 0o700 });
    const lock = lockDataDir(folder);
    forgetOwner(folder);
    lock.release();
    for (const bytes of [MEBIBYTE, 4096, 1]) while (fillMore(bytes));
    execFileSync('sync', ['-f', disk]);
    const again = lockDataDir(folder);
    expect(dataDirOwner(folder)).toBe(process.pid);
    again.release();
  });

  test('a writer that meets a full disk and is killed loses no acknowledged write and corrupts nothing', async () => {
    mount(64);
    const written = new Map<string, number>();
    for (let round = 0; round < 2; round++) {
      const writer = fork(new URL('./store-writer.ts', import.meta.url), [folder, `/${round}/`, '900000'], {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      });
      // LMDB prints failed commits to stderr, and no commit may fail.
      let printed = '';
      writer.stderr?.on('data', (text: Buffer) => (printed += text));
      await untilRefused(writer, 20 + 37 * round, (key, revision) => written.set(key, revision));
      const exited = once(writer, 'close');
      writer.kill('SIGKILL');
      await exited;
      expect(printed).toBe('');

      const store = await open();
      for (const [key, revision] of written) expect((await store.get(key))?.modRevision, key).toBe(revision);
      await expect(store.txn(put('/more', 900_000))).rejects.toBeInstanceOf(StorageFullError);
      await Promise.all([...written.keys()].map((key) => store.txn(remove(key))));
      written.clear();
      rmSync(filler);
      const { revision } = await store.txn(put(`/after/${round}`, 900_000));
      written.set(`/after/${round}`, revision);
      await store.close();
    }
  });

  test('when only the store fills the disk, deletions make room for other writes', async () => {
    mount(32);
    const store = await open();
    for (let time = 0; time < 3; time++) {
      const count = await untilFull(store, 100_000);
      expect(count).toBeGreaterThan(30);
      const keys = Array.from({ length: count }, (_, index) => `/${index}`);
      await Promise.all(keys.map((key) => store.txn(remove(key))));
    }
  });

  test('on a full disk values can be deleted, shrunk and grown a little, repeatedly', async () => {
    mount(32);
    let store = await open();
    await store.txn(put('/first', 1));
    while (fillMore(MEBIBYTE));
    const count = await untilFull(store, 20_000, 10);
    for (const again of [false, true]) {
      if (again) {
        await store.close();
        store = await open();
      }
      await expect(store.txn(put('/new', 10))).rejects.toBeInstanceOf(StorageFullError);
      await expect(store.txn(put('/0', 40_000))).rejects.toBeInstanceOf(StorageFullError);
      for (let time = 1; time <= 60; time++) await store.txn(put('/0', 20_000 + (time % 4) * 1000));
      await store.txn(put('/1', 5));
      await store.txn(remove(again ? '/3' : '/2'));
    }
    expect((await store.range({ prefix: '' })).items).toHaveLength(count - 1);
    rmSync(filler);
    await store.txn(put('/new', 1_000_000));
  });
});

test('holes in the data file are filled before LMDB writes', async () => {
  inMemory(64);
  const first = await open();
  for (let index = 0; index < 10; index++) await first.txn(put(`/${index}`, 900_000));
  await first.close();
  execFileSync('fallocate', ['--dig-holes', join(folder, 'data.mdb')]);
  const allocated = () => statSync(join(folder, 'data.mdb')).blocks * 512;
  const { size } = statSync(join(folder, 'data.mdb'));
  expect(allocated()).toBeLessThan(size);
  while (fillMore(MEBIBYTE));
  const store = await open();
  await expect(store.txn(put('/new', 10))).rejects.toBeInstanceOf(StorageFullError);
  expect((await store.range({ prefix: '' })).items).toHaveLength(10);
  rmSync(filler);
  await store.txn(put('/new', 10));
  expect(allocated()).toBeGreaterThanOrEqual(size);
});

test('concurrent writes on a full disk are accepted or refused one by one', async () => {
  inMemory(32);
  const store = await open();
  await store.txn(put('/a', 20_000));
  while (fillMore(MEBIBYTE));
  const count = await untilFull(store, 20_000, 10);
  const types: string[] = [];
  store.watch('', undefined, (events) => types.push(...events.map(({ type }) => type)));
  const writes = [put('/b', 1000), put('/a', 20_001), put('/c', 1000), remove('/a')];
  const outcomes = await Promise.allSettled(writes.map((txn) => store.txn(txn)));
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled']);
  expect(types).toEqual(['put', 'delete']);
  expect(store.revision()).toBe(count + 3);
});

test('a copy of the store for which the disk has no space fails with a message about the full disk, and leaves the store', async () => {
  inMemory(32);
  const store = await open();
  for (let index = 0; index < 10; index++) await store.txn(put(`/${index}`, MEBIBYTE));
  await store.close();
  while (fillMore(MEBIBYTE));
  await expect(copyLmdbFile(folder)).rejects.toBeInstanceOf(StorageFullError);
  expect(readdirSync(folder).sort()).toEqual(['data.mdb', 'lock.mdb']);
  expect((await (await open()).range({ prefix: '' })).items).toHaveLength(10);
});

test('opening a new store on a full disk fails with a message about the full disk', async () => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]);
  await expect(openLmdbStore({ directory: folder })).rejects.toThrow(
    `cannot write to the store in ${folder}: the disk is full; free some space and try again`,
  );
  expect(statfsSync(disk).bfree).toBeGreaterThan(0);
});
