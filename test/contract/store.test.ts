/**
 * Runs one suite with the Stores in memory and with LMDB, and with a store whose listeners are called later. Also tests the files of the
 * LMDB store.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aesgcm } from '../../src/apiserver/encryption/ciphers.ts';
import { encryptedStore } from '../../src/apiserver/encryption/encrypted-store.ts';
import { createTransformer } from '../../src/apiserver/encryption/transformer.ts';
import { delayWatch } from '../../src/store/delayed-watch-fixture.ts';
import { copyLmdbFile } from '../../src/store/lmdb/copy-file.ts';
import { openLmdbStore } from '../../src/store/lmdb/lmdb-store.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { CompactedError, type Store, type StoredValue, type StoreEvent, type Txn } from '../../src/store/store.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (kv: StoredValue | undefined): string | undefined => kv && new TextDecoder().decode(kv.value);
const put = (key: string, value: string): Txn => ({ compare: [], puts: [{ key, value: bytes(value) }] });
const plain = (kv: StoredValue | undefined) =>
  kv && { key: kv.key, value: text(kv), create: kv.createRevision, mod: kv.modRevision };
const plainEvent = (event: StoreEvent) =>
  event.type === 'put'
    ? { put: plain(event.kv), previous: plain(event.previous) }
    : { delete: event.key, revision: event.revision, previous: plain(event.previous) };

let directory: string;
let opened: Store[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'lifepod-store-'));
  opened = [];
});
afterEach(async () => {
  for (const store of opened) await store.close();
  rmSync(directory, { recursive: true, force: true });
});
let folders = 0;
const keep = (store: Store): Store => {
  opened.push(store);
  return store;
};
const lmdb = async (historyRevisions = 10_000, folder = `lmdb${folders++}`): Promise<Store> =>
  keep(await openLmdbStore({ directory: join(directory, folder), historyRevisions }));

/** until() resolves to the events once there are `count`, because a write may resolve before its listeners are called. */
function follow(store: Store, prefix = '', afterRevision?: number) {
  const events: StoreEvent[] = [];
  let wake = (): void => {};
  const stop = store.watch(prefix, afterRevision, (batch) => {
    events.push(...batch);
    wake();
  });
  const until = async (count: number): Promise<StoreEvent[]> => {
    while (events.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return events;
  };
  return { events, until, stop };
}

const transformer = createTransformer([aesgcm('one', Buffer.alloc(32, 1))]);
const encrypted = (store: Store): Store => encryptedStore(store, () => transformer);
const memory = (historyRevisions = 10_000): Store => createMemoryStore({ historyRevisions });

describe.each<{ name: string; create: (historyRevisions?: number) => Promise<Store> }>([
  { name: 'memory', create: async (historyRevisions) => memory(historyRevisions) },
  { name: 'lmdb', create: lmdb },
  { name: 'encrypted', create: async (historyRevisions) => encrypted(memory(historyRevisions)) },
  { name: 'delayed', create: async (historyRevisions) => delayWatch(memory(historyRevisions), setImmediate) },
])('$name store', ({ create }) => {
  test('a new store is empty and has revision 0', async () => {
    const store = await create();
    expect(store.revision()).toBe(0);
    expect(await store.get('/a')).toBeUndefined();
    expect(await store.range({ prefix: '' })).toEqual({ items: [], revision: 0, remaining: 0 });
  });

  test('a key keeps its create revision over updates, and gets a new one after a delete', async () => {
    const store = await create();
    await store.txn(put('/a', '1'));
    await store.txn(put('/a', '2'));
    expect(plain(await store.get('/a'))).toEqual({ key: '/a', value: '2', create: 1, mod: 2 });
    await store.txn({ compare: [], deletes: ['/a'] });
    await store.txn(put('/a', '3'));
    expect(plain(await store.get('/a'))).toEqual({ key: '/a', value: '3', create: 4, mod: 4 });
  });

  test('a failed comparison changes nothing', async () => {
    const store = await create();
    await store.txn(put('/a', '1'));
    const result = await store.txn({
      ...put('/a', '2'),
      compare: [
        { key: '/a', modRevision: 0 },
        { key: '/b', modRevision: 0 },
      ],
    });
    expect(result).toEqual({ succeeded: false, revision: 1 });
    expect(store.revision()).toBe(1);
    expect(text(await store.get('/a'))).toBe('1');
  });

  test('the writes of one transaction share a revision; a transaction without effect gets none', async () => {
    const store = await create();
    await store.txn(put('/old', '0'));
    const result = await store.txn({
      compare: [],
      puts: [
        { key: '/a', value: bytes('1') },
        { key: '/b', value: bytes('') },
      ],
      deletes: ['/old', '/none'],
    });
    expect(result).toEqual({ succeeded: true, revision: 2 });
    expect((await store.range({ prefix: '/' })).items.map((kv) => [kv.key, kv.modRevision])).toEqual([
      ['/a', 2],
      ['/b', 2],
    ]);
    expect(await store.txn({ compare: [], deletes: ['/none'] })).toEqual({ succeeded: true, revision: 2 });
    expect(store.revision()).toBe(2);
  });

  test('transactions with invalid or duplicate keys are refused', async () => {
    const store = await create();
    for (const key of ['', 'a\0b', 'ü', 'k'.repeat(1025)])
      await expect(store.txn(put(key, ''))).rejects.toThrow('bad key');
    await expect(store.txn({ ...put('/a', ''), deletes: ['/a'] })).rejects.toThrow('duplicate key');
    expect(await store.txn(put('k'.repeat(1024), 'v'))).toEqual({ succeeded: true, revision: 1 });
  });

  test('reads accept keys that cannot be stored: nothing is found, and paging continues after them', async () => {
    const store = await create();
    for (const key of ['/a', '/ab', '/b', `/b${'k'.repeat(1000)}`, '/c']) await store.txn(put(key, 'v'));
    const keysAfter = async (after: string) =>
      (await store.range({ prefix: '/', after })).items.map(({ key }) => key.slice(0, 2));
    for (const key of [`/b${'k'.repeat(8000)}`, `/b${'ü'.repeat(8000)}`, `/bz${'😀'.repeat(8000)}`]) {
      expect(await store.get(key)).toBeUndefined();
      expect(await store.get(key, 2)).toBeUndefined();
      expect((await store.range({ prefix: key })).items).toEqual([]);
      expect(await keysAfter(key)).toEqual(['/c']);
    }
    expect(await keysAfter(`/a${'z'.repeat(8000)}`)).toEqual(['/b', '/b', '/c']);
    for (const key of ['/b\0', '/b\0ü']) {
      expect(await store.get(key)).toBeUndefined();
      expect((await store.range({ prefix: key })).items).toEqual([]);
    }
    expect(await keysAfter('/a\0z')).toEqual(['/a', '/b', '/b', '/c']);
    expect(await keysAfter(`/a${'b'.repeat(1021)}\0`)).toEqual(['/b', '/b', '/c']);
  });

  test('the pages of a prefix show one revision while the store changes', async () => {
    const store = await create();
    for (const key of ['/p/a', '/p/b', '/p/c', '/p/d', '/q/a', '/o']) await store.txn(put(key, 'old'));
    const first = await store.range({ prefix: '/p/', limit: 2 });
    expect([first.items.map((kv) => kv.key), first.remaining, first.revision]).toEqual([['/p/a', '/p/b'], 2, 6]);
    await store.txn({
      compare: [],
      puts: [
        { key: '/p/bb', value: bytes('new') },
        { key: '/p/c', value: bytes('new') },
      ],
      deletes: ['/p/d'],
    });
    const second = await store.range({ prefix: '/p/', limit: 5, after: '/p/b', revision: first.revision });
    expect(second.items.map((kv) => [kv.key, text(kv)])).toEqual([
      ['/p/c', 'old'],
      ['/p/d', 'old'],
    ]);
    expect([second.remaining, second.revision]).toEqual([0, 6]);
    const now = await store.range({ prefix: '/p/', after: '/p/b' });
    expect(now.items.map((kv) => [kv.key, text(kv)])).toEqual([
      ['/p/bb', 'new'],
      ['/p/c', 'new'],
    ]);
  });

  test('a range reports whether keys remain, although it need not count them', async () => {
    const store = await create();
    for (const key of ['/p/a', '/p/b', '/p/c', '/p/d', '/q/a']) await store.txn(put(key, 'x'));
    const { revision } = await store.range({ prefix: '/' });
    const remains = async (options: { limit?: number; after?: string; revision?: number }) => {
      const { items, remaining } = await store.range({ prefix: '/p/', remainingAsFlag: true, ...options });
      return [items.length, remaining > 0];
    };
    await store.txn({ compare: [], deletes: ['/q/a'] });
    for (const at of [{}, { revision }]) {
      expect(await remains({ ...at, limit: 1 })).toEqual([1, true]);
      expect(await remains({ ...at, limit: 3 })).toEqual([3, true]);
      expect(await remains({ ...at, limit: 4 })).toEqual([4, false]);
      expect(await remains({ ...at, limit: 9, after: '/p/b' })).toEqual([2, false]);
      expect(await remains(at)).toEqual([4, false]);
    }
  });

  test('a range with a limit ends earlier when values are large; a range without a limit returns all', async () => {
    const store = await create();
    const large = 'x'.repeat(5 * 1024 * 1024);
    for (const key of ['/a', '/b', '/c', '/d']) await store.txn(put(key, large));
    const { revision } = await store.range({ prefix: '/' });
    const keysOf = async (options: { limit?: number; after?: string; revision?: number }) => {
      const { items, remaining } = await store.range({ prefix: '/', ...options });
      return [items.map(({ key }) => key).join(), remaining];
    };
    await store.txn(put('/d', 'small'));
    for (const at of [{}, { revision }]) {
      expect(await keysOf({ ...at, limit: 4 })).toEqual(['/a,/b', 2]);
      expect(await keysOf({ ...at, limit: 4, after: '/b' })).toEqual(['/c,/d', 0]);
      expect(await keysOf(at)).toEqual(['/a,/b,/c,/d', 0]);
    }
  });

  test('a write returns its revision, which reads include at once and listeners get at some time', async () => {
    const store = await create();
    const watch = follow(store, '/a');
    for (const revision of [1, 2, 3]) {
      expect(await store.txn(put('/a', `${revision}`))).toEqual({ succeeded: true, revision });
      expect(store.revision()).toBe(revision);
      expect((await store.get('/a'))?.modRevision).toBe(revision);
      expect((await store.range({ prefix: '/' })).revision).toBe(revision);
    }
    await store.txn({ compare: [], deletes: ['/a'] });
    const seen = await watch.until(4);
    expect(seen.map((event) => [event.type, revisionOf(event)])).toEqual([
      ['put', 1],
      ['put', 2],
      ['put', 3],
      ['delete', 4],
    ]);
  });

  test('the changes of one transaction are in one call of a listener', async () => {
    const store = await create();
    const calls: string[][] = [];
    store.watch('/', undefined, (events) => calls.push(events.map(keyOf)));
    const last = follow(store);
    await store.txn({ compare: [], puts: ['/a', '/b', '/c'].map((name) => ({ key: name, value: bytes('1') })) });
    await last.until(3);
    expect(calls).toEqual([['/a', '/b', '/c']]);
  });

  test('a watch receives nothing after it has ended, even if it ends inside a listener', async () => {
    const store = await create();
    let calls = 0;
    const stops: (() => void)[] = [];
    for (let i = 0; i < 2; i++) {
      stops.push(
        store.watch('', undefined, () => {
          calls++;
          for (const stop of stops) stop();
        }),
      );
    }
    const last = follow(store);
    await store.txn(put('/a', '1'));
    await store.txn(put('/a', '2'));
    await last.until(2);
    expect(calls).toBe(1);
  });

  test('a watch from a future revision delivers only later events', async () => {
    const store = await create();
    const watch = follow(store, '', 2);
    for (const value of ['1', '2', '3', '4']) await store.txn(put('/a', value));
    expect((await watch.until(2)).map(revisionOf)).toEqual([3, 4]);
  });

  test('a write inside a listener reaches every listener after the current write', async () => {
    const store = await create();
    const first: string[] = [];
    store.watch('', undefined, (events) => {
      first.push(...events.map(keyOf));
      if (events.map(keyOf).includes('/a')) void store.txn(put('/b', ''));
    });
    const second = follow(store);
    await store.txn(put('/a', ''));
    expect((await second.until(2)).map(keyOf)).toEqual(['/a', '/b']);
    expect(first).toEqual(['/a', '/b']);
  });

  test('compacted revisions can be neither read nor watched', async () => {
    const store = await create();
    for (const value of ['1', '2', '3', '4']) await store.txn(put('/a', value));
    await store.compact(3);
    expect(text(await store.get('/a', 3))).toBe('3');
    await expect(store.get('/a', 2)).rejects.toBeInstanceOf(CompactedError);
    await expect(store.range({ prefix: '', revision: 2 })).rejects.toMatchObject({ compactedRevision: 3 });
    expect(() => store.watch('', 2, () => {})).toThrow(CompactedError);
    const seen = await follow(store, '', 3).until(1);
    expect(seen.map(plainEvent)).toEqual([
      { put: { key: '/a', value: '4', create: 1, mod: 4 }, previous: { key: '/a', value: '3', create: 1, mod: 3 } },
    ]);
    await expect(store.compact(5)).rejects.toThrow('future revision');
    await expect(store.get('/a', 5)).rejects.toThrow('future revision');
  });

  test('a store compacts its history to the configured number of revisions', async () => {
    const store = await create(100);
    await Promise.all(Array.from({ length: 1500 }, (_, i) => store.txn(put(`/k${i % 7}`, `${i}`))));
    expect(() => store.watch('', 1400 - 1001, () => {})).toThrow(CompactedError);
    expect(await follow(store, '', 1400).until(100)).toHaveLength(100);
  });

  test('concurrent writers that compare revisions lose no update', async () => {
    const store = await create();
    await store.txn(put('/n', '0'));
    const increment = async (): Promise<void> => {
      for (;;) {
        const kv = (await store.get('/n')) as StoredValue;
        const next = String(Number(text(kv)) + 1);
        if ((await store.txn({ ...put('/n', next), compare: [{ key: '/n', modRevision: kv.modRevision }] })).succeeded)
          return;
      }
    };
    await Promise.all(Array.from({ length: 50 }, increment));
    expect(text(await store.get('/n'))).toBe('50');
    expect(store.revision()).toBe(51);
  });

  test('property: transactions, concurrent or not, behave like those of a naive model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const store = await create();
        try {
          await checkAgainstModel(store, steps);
        } finally {
          await store.close();
        }
      }),
      { numRuns: 60 },
    );
  });
});

const key = fc.constantFrom('/a', '/a/b', '/a/c', '/ab', '/b', '/b/x');
const txnArbitrary = fc.record({
  compares: fc.array(fc.record({ key, holds: fc.boolean() }), { maxLength: 2 }),
  writes: fc.uniqueArray(fc.record({ key, value: fc.option(fc.string({ maxLength: 3 }), { nil: undefined }) }), {
    maxLength: 3,
    selector: (write) => write.key,
  }),
});
type Drawn = typeof txnArbitrary extends fc.Arbitrary<infer T> ? T : never;
/** Either up to four transactions, which are sent concurrently, or a compaction to `compactBack` revisions before the latest. */
const step = fc.oneof(
  { weight: 9, arbitrary: fc.record({ txns: fc.array(txnArbitrary, { minLength: 1, maxLength: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ compactBack: fc.nat(5) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Model {
  /** states[r] is the state at revision r, by key. */
  states: Map<string, StoredValue>[];
  events: StoreEvent[];
  compacted: number;
}

/**
 * Returns the transaction for the store and whether it must succeed. A comparison that is to hold contains the revision of the model, any
 * other comparison contains a higher one.
 */
function applyToModel(model: Model, drawn: Drawn): { txn: Txn; succeeded: boolean } {
  const state = model.states.at(-1) as Map<string, StoredValue>;
  const compare = drawn.compares.map((wanted) => {
    const modRevision = state.get(wanted.key)?.modRevision ?? 0;
    return { key: wanted.key, modRevision: wanted.holds ? modRevision : modRevision + 1 };
  });
  const puts = drawn.writes
    .filter((w) => w.value !== undefined)
    .map((w) => ({ key: w.key, value: bytes(w.value as string) }));
  const deletes = drawn.writes.filter((w) => w.value === undefined).map((w) => w.key);
  const txn = { compare, puts, deletes };
  if (drawn.compares.some((wanted) => !wanted.holds)) return { txn, succeeded: false };
  const effective = deletes.filter((name) => state.has(name));
  if (puts.length + effective.length === 0) return { txn, succeeded: true };
  const revision = model.states.length;
  const next = new Map(state);
  for (const { key: name, value } of puts) {
    const previous = state.get(name);
    const kv = { key: name, value, createRevision: previous?.createRevision ?? revision, modRevision: revision };
    next.set(name, kv);
    model.events.push({ type: 'put', kv, previous });
  }
  for (const name of effective) {
    model.events.push({ type: 'delete', key: name, revision, previous: state.get(name) as StoredValue });
    next.delete(name);
  }
  model.states.push(next);
  return { txn, succeeded: true };
}

const revisionOf = (event: StoreEvent): number => (event.type === 'put' ? event.kv.modRevision : event.revision);
const keyOf = (event: StoreEvent): string => (event.type === 'put' ? event.kv.key : event.key);
const sorted = (state: Map<string, StoredValue>, prefix: string): StoredValue[] =>
  [...state.values()].filter((kv) => kv.key.startsWith(prefix)).sort((a, b) => (a.key < b.key ? -1 : 1));

async function checkAgainstModel(store: Store, steps: Step[]): Promise<void> {
  const model: Model = { states: [new Map()], events: [], compacted: 0 };
  const live = follow(store, '/a');
  for (const drawn of steps) {
    if ('compactBack' in drawn) {
      model.compacted = Math.max(model.compacted, store.revision() - drawn.compactBack);
      await store.compact(model.compacted);
      continue;
    }
    const expected = drawn.txns.map((each) => applyToModel(model, each));
    const results = await Promise.all(expected.map(({ txn }) => store.txn(txn)));
    expect(results.map((result) => result.succeeded)).toEqual(expected.map(({ succeeded }) => succeeded));
  }
  await checkHistory(store, model);
  const expected = model.events.filter((event) => keyOf(event).startsWith('/a'));
  expect((await live.until(expected.length)).map(plainEvent)).toEqual(expected.map(plainEvent));
}

async function checkHistory(store: Store, model: Model): Promise<void> {
  expect(store.revision()).toBe(model.states.length - 1);
  for (let revision = model.compacted; revision < model.states.length; revision++) {
    const state = model.states[revision] as Map<string, StoredValue>;
    for (const prefix of ['', '/a', '/a/', '/b']) {
      const all = sorted(state, prefix);
      const range = await store.range({ prefix, revision, limit: 2 });
      expect(range.items.map(plain)).toEqual(all.slice(0, 2).map(plain));
      expect(range.remaining).toBe(all.length - range.items.length);
      const rest = await store.range({ prefix, revision, after: '/a/b' });
      expect(rest.items.map(plain)).toEqual(all.filter((kv) => kv.key > '/a/b').map(plain));
      const watch = follow(store, prefix, revision);
      const suffix = model.events.filter((event) => revisionOf(event) > revision && keyOf(event).startsWith(prefix));
      expect((await watch.until(suffix.length)).map(plainEvent)).toEqual(suffix.map(plainEvent));
      watch.stop();
    }
    expect(plain(await store.get('/a', revision))).toEqual(plain(state.get('/a')));
  }
}

describe('LMDB files', () => {
  test('property: a reopened LMDB store contains every acknowledged write, including its history', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(txnArbitrary, { minLength: 1, maxLength: 20 }), async (drawn) => {
        const folder = `again${folders++}`;
        const model: Model = { states: [new Map()], events: [], compacted: 0 };
        const first = await lmdb(10_000, folder);
        await Promise.all(drawn.map((each) => first.txn(applyToModel(model, each).txn)));
        await first.close();
        const second = await lmdb(10_000, folder);
        await checkHistory(second, model);
        await second.close();
      }),
      { numRuns: 20 },
    );
  });

  test('the history of an LMDB store is at most 64 MiB, also after reopening, and its file stops growing', async () => {
    const large = 'x'.repeat(4 * 2 ** 20);
    let store = await lmdb(10_000, 'large');
    const write = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) await store.txn(put('/a', large));
    };
    await write(40);
    const { size } = statSync(join(directory, 'large/data.mdb'));
    expect(() => store.watch('', 20, () => {})).toThrow(CompactedError);
    expect(text(await store.get('/a', 30))).toBe(large);
    await store.close();
    store = await lmdb(10_000, 'large');
    await write(40);
    expect(() => store.watch('', 60, () => {})).toThrow(CompactedError);
    expect(text(await store.get('/a', 70))).toBe(large);
    expect(statSync(join(directory, 'large/data.mdb')).size).toBeLessThan(size * 1.5);
    expect(size).toBeLessThan(200 * 2 ** 20);
    await store.close();
  });

  test('the files of an LMDB store are accessible to their owner only', async () => {
    await lmdb(10, 'modes');
    const mode = (path: string): number => statSync(join(directory, path)).mode & 0o777;
    expect([mode('modes'), mode('modes/data.mdb'), mode('modes/lock.mdb')]).toEqual([0o700, 0o600, 0o600]);
  });

  test('an LMDB store contains every acknowledged write after its writer was killed', async () => {
    for (let round = 0; round < 3; round++) {
      const folder = join(directory, `killed${round}`);
      const child = fork(new URL('./store-writer.ts', import.meta.url), [folder], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      const acknowledged: { key: string; revision: number }[] = [];
      await new Promise<void>((resolve, reject) => {
        child.on('message', (message: { key: string; revision: number }) => {
          acknowledged.push(message);
          if (acknowledged.length === 150 + round * 50) resolve();
        });
        child.once('exit', (code) => reject(new Error(`the writer ended unexpectedly with ${code}`)));
      });
      child.removeAllListeners('exit');
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      const store = keep(await openLmdbStore({ directory: folder }));
      for (const { key: name, revision } of acknowledged) expect((await store.get(name))?.modRevision).toBe(revision);
      const { items, revision } = await store.range({ prefix: '' });
      expect(items.length).toBe(revision);
      expect(await store.txn(put('/after', ''))).toEqual({ succeeded: true, revision: revision + 1 });
    }
  });

  test('opening an LMDB folder that cannot be read fails with one clear sentence', async () => {
    const garbage = join(directory, 'garbage');
    await (await lmdb(10, 'garbage')).close();
    writeFileSync(join(garbage, 'data.mdb'), 'this is not a database '.repeat(1000));
    await expect(openLmdbStore({ directory: garbage })).rejects.toThrow(`cannot open the store in ${garbage}: `);
    writeFileSync(join(directory, 'file'), '');
    await expect(openLmdbStore({ directory: join(directory, 'file') })).rejects.toThrow(
      /^cannot open the store in .*file: /,
    );
  });

  test('many concurrent LMDB writers share commits', async () => {
    const store = await lmdb();
    const batches: number[] = [];
    store.watch('', undefined, (events) => batches.push(events.length));
    const last = follow(store);
    await Promise.all(Array.from({ length: 1000 }, (_, i) => store.txn(put(`/k${i}`, `${i}`))));
    await last.until(1000);
    expect(batches.length).toBeLessThan(20);
    expect(batches.reduce((sum, count) => sum + count, 0)).toBe(1000);
  });

  test('a copied LMDB file has all values and the history, and nothing of a deleted value', async () => {
    const folder = join(directory, 'copied');
    const contains = (found: string): boolean => readFileSync(join(folder, 'data.mdb')).includes(found);
    const state = async (store: Store, revision: number) => {
      const { items } = await store.range({ prefix: '', revision });
      return items.map(plain);
    };
    const store = await lmdb(10_000, 'copied');
    await store.txn(put('/gone', 'deleted-and-compacted'.repeat(200)));
    for (let i = 0; i < 200; i++) await store.txn(put(`/k${i % 50}`, `${i}`.repeat(i)));
    await store.txn({ compare: [], deletes: ['/gone'] });
    const revision = store.revision();
    await store.compact(revision);
    await store.txn(put('/k0', 'last'));
    const [before, newest] = [await state(store, revision), await state(store, revision + 1)];
    await store.close();
    expect(contains('deleted-and-compacted')).toBe(true);
    mkdirSync(join(folder, 'copy'));
    writeFileSync(join(folder, 'copy/data.mdb'), 'part of an interrupted copy');
    await copyLmdbFile(folder);
    expect(readdirSync(folder).sort()).toEqual(['data.mdb', 'lock.mdb']);
    expect(statSync(join(folder, 'data.mdb')).mode & 0o777).toBe(0o600);
    const again = await lmdb(10_000, 'copied');
    expect(await state(again, revision)).toEqual(before);
    expect(await state(again, revision + 1)).toEqual(newest);
    expect(await again.txn(put('/after', ''))).toEqual({ succeeded: true, revision: revision + 2 });
    expect(contains('deleted-and-compacted')).toBe(false);
  });

  test('closing an LMDB store finishes accepted writes and refuses later calls', async () => {
    const store = await lmdb(10, 'closing');
    const taken = store.txn(put('/a', '1'));
    await store.close();
    expect(await taken).toEqual({ succeeded: true, revision: 1 });
    await expect(store.txn(put('/a', '2'))).rejects.toThrow('is closed');
    await expect(store.get('/a')).rejects.toThrow('is closed');
  });
});
