import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CompactedError, type Store, type StoredValue } from '../store.ts';
import { rewoundRange } from '../transaction.ts';
import { openLmdbStore } from './lmdb-store.ts';

const WRITES = 100;

let directory: string;
let store: Store;
let first: number;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'lifepod-past-'));
  store = await openLmdbStore({ directory });
  for (let index = 0; index < WRITES; index++) await write(`/${index % 2}/${index % 10}`, String(index));
  first = 1;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const write = (key: string, value: string) =>
  store.txn({ compare: [], puts: [{ key, value: new TextEncoder().encode(value) }] });

/** Makes a read of an older revision yield after every two records: each call of performance.now() advances the clock by 10 ms. */
function slowClock(): void {
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 10;
    return now;
  });
}

/** Resolves, when a read yields for the first time, to a function that lets the read continue. */
function firstWait(): Promise<() => void> {
  return new Promise((resolve) => {
    vi.spyOn(globalThis, 'setImmediate').mockImplementationOnce(((callback: () => void) => {
      resolve(callback);
    }) as unknown as typeof setImmediate);
  });
}

test('a read of an older revision yields to the event loop', async () => {
  slowClock();
  let turns = 0;
  let over = false;
  const turn = (): void => {
    turns++;
    if (!over) setImmediate(turn);
  };
  setImmediate(turn);
  const { items, remaining } = await store.range({ prefix: '/0/', revision: first + 4, limit: 2 });
  over = true;
  expect(items.map(({ key, value }) => [key, new TextDecoder().decode(value)])).toEqual([
    ['/0/0', '0'],
    ['/0/2', '2'],
  ]);
  expect(remaining).toBe(1);
  expect(turns).toBeGreaterThan(WRITES / 4);
});

test('a read of an older revision does not see concurrent writes', async () => {
  slowClock();
  const waits = firstWait();
  let isOver = false;
  const listed = store.range({ prefix: '/', revision: first + 1 });
  const read = store.get('/0/0', first + 1);
  void Promise.race([listed, read]).then(() => {
    isOver = true;
  });
  const resume = await waits;
  await write('/0/0', 'new');
  await write('/0/x', 'new');
  expect([store.revision(), isOver]).toEqual([WRITES + 2, false]);
  resume();
  expect((await listed).items.map(({ key }) => key)).toEqual(['/0/0', '/1/1']);
  expect(new TextDecoder().decode((await read)?.value)).toBe('0');
});

test('a read of an older revision rejects if the revision is compacted during the read', async () => {
  slowClock();
  const waits = firstWait();
  const isCompacted = expect(store.range({ prefix: '/', revision: first })).rejects.toThrow(CompactedError);
  const resume = await waits;
  await store.compact(WRITES - 1);
  resume();
  await isCompacted;
});

test('closing the store rejects running and queued reads of older revisions', async () => {
  slowClock();
  const reads = [store.range({ prefix: '/', revision: first }), store.range({ prefix: '/', revision: first + 1 })];
  const isClosed = reads.map((read) => expect(read).rejects.toThrow(/is closed$/));
  await Promise.all([...isClosed, store.close()]);
});

test('a read of an older revision continues after the store has been reopened', async () => {
  slowClock();
  const waits = firstWait();
  const listed = store.range({ prefix: '/', revision: first + 1 });
  const resume = await waits;
  // The store calls recover(), which reopens LMDB, after a failed write.
  await (store as unknown as { recover(error: Error): Promise<Error> }).recover(new Error('EIO'));
  resume();
  expect((await listed).items.map(({ key }) => key)).toEqual(['/0/0', '/1/1']);
});

test('reads of older revisions run one at a time, in the order of their calls', async () => {
  slowClock();
  const ended: number[] = [];
  const read = async (index: number): Promise<void> => {
    await store.get('/0/0', first + index);
    ended.push(index);
  };
  // Later revisions need a shorter scan: if the reads ran concurrently, the last one would end first.
  await Promise.all([read(1), read(40), read(WRITES - 5)]);
  expect(ended).toEqual([1, 40, WRITES - 5]);
});

test('aborting the signal ends running and queued reads of older revisions', async () => {
  slowClock();
  const waits = firstWait();
  const [left, second] = [new AbortController(), new AbortController()];
  const reads = [left, second].map(({ signal }) => store.range({ prefix: '/', revision: first, signal }));
  const ended = reads.map((read) => expect(read).rejects.toThrow('aborted'));
  const resume = await waits;
  second.abort();
  left.abort();
  vi.restoreAllMocks();
  resume();
  await Promise.all(ended);
  expect((await store.range({ prefix: '/', revision: first + 1 })).items).toHaveLength(2);
});

test('rewoundRange() with a limit reads only the keys that it needs', async () => {
  let taken = 0;
  function* keys() {
    for (let index = 0; index < 1000; index++) {
      taken++;
      yield `/${String(index).padStart(4, '0')}`;
    }
  }
  const value = (key: string): StoredValue => ({ key, createRevision: 1, modRevision: 1, value: new Uint8Array() });
  const newest = {
    keys: keys(),
    read: value,
    has: (key: string) => !key.endsWith('x'),
    countAfter: (key: string) => 999 - Number(key.slice(1)),
  };
  // After the older revision, 0001 was changed, 0003 was created, and 0001x and 0500x were deleted.
  const changed = new Map([
    ['/0500x', value('/0500x')],
    ['/0003', undefined],
    ['/0001x', value('/0001x')],
    ['/0001', value('/0001')],
  ]);
  const { items, remaining } = rewoundRange(newest, changed, { prefix: '/', limit: 4 });
  expect(items.map(({ key }) => key)).toEqual(['/0000', '/0001', '/0001x', '/0002']);
  expect(remaining).toBe(997);
  expect(taken).toBeLessThan(10);
});
