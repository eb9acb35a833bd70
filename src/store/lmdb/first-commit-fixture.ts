/**
 * Makes each of CHANGES as the first commit to its own compacted copy of a store with a long history, and prints the name of the change.
 * Runs in a process of its own, because a crash of LMDB ends the process. The argument is an empty folder.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Txn } from '../store.ts';
import { copyTables, forgetHistory } from './copy-file.ts';
import type { FileStore } from './file-store.ts';
import { openLmdbStore } from './lmdb-store.ts';
import { openTables } from './tables.ts';

const KEYS = 500;
const UPDATES = 2;
/** LMDB stores a value of this size in pages of its own. */
const VALUE = Buffer.alloc(3000, 'x');

const update = (index: number): Txn => ({ compare: [], puts: [{ key: `/key/${index % KEYS}`, value: VALUE }] });

async function createStore(directory: string): Promise<void> {
  const store = await openLmdbStore({ directory });
  for (let done = 0; done < KEYS * (UPDATES + 1); done += KEYS) {
    await Promise.all(Array.from({ length: KEYS }, (_, index) => store.txn(update(done + index))));
  }
  await store.close();
}

async function withStore(directory: string, historyRevisions: number, body: (store: FileStore) => Promise<unknown>) {
  const store = await openLmdbStore({ directory, historyRevisions });
  await body(store);
  await store.close();
}

const CHANGES: Record<string, (directory: string) => Promise<unknown>> = {
  'forget the history': (directory) => forgetHistory(directory),
  'trim the history': (directory) => withStore(directory, 1, (store) => store.txn(update(0))),
  'compact the history': (directory) => withStore(directory, 10_000, (store) => store.compact(store.revision())),
  'update all keys': (directory) =>
    withStore(directory, 10_000, (store) =>
      Promise.all(Array.from({ length: KEYS }, (_, index) => store.txn(update(index)))),
    ),
};

const [folder = ''] = process.argv.slice(2);
const original = join(folder, 'original');
await createStore(original);
for (const [name, change] of Object.entries(CHANGES)) {
  const copy = join(folder, name);
  mkdirSync(copy);
  const tables = await openTables(original);
  await copyTables(tables, copy);
  await tables.root.close();
  await change(copy);
  process.stdout.write(`${name}\n`);
}
