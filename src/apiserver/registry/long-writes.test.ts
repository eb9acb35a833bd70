import { afterEach, describe, expect, test, vi } from 'vitest';
import type { PatchType } from '../../machinery/patch/patch.ts';
import type { ApiError } from '../../machinery/status.ts';
import { longWork } from '../../platform/work-in-turns.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { CONFIG_MAPS, configMap, failure, type Started, startRegistry } from './testing.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Makes each write yield after every step. */
function slowClock(): void {
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 30;
    return now;
  });
}

const apply = ({ registry }: Started, fieldManager: string, data: Record<string, string>) =>
  registry.patch(CONFIG_MAPS, 'default', 'a', 'application/apply-patch+yaml', configMap('a', data), { fieldManager });
const patch = ({ registry }: Started, type: PatchType, data: object, fieldManager = 'patcher') =>
  registry.patch(CONFIG_MAPS, 'default', 'a', type, { data }, { fieldManager });

async function turnsDuring(call: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  const turn = (): void => {
    turns++;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  await call().finally(() => clearImmediate(next));
  return turns;
}

describe('long writes', () => {
  test.each<[string, (started: Started) => Promise<unknown>, number]>([
    ['a first apply', (started) => apply(started, 'first', { new: '1' }), 12],
    ['a later apply', (started) => apply(started, 'me', { x: '2' }), 12],
    ['a merge patch', (started) => patch(started, 'application/merge-patch+json', { x: '2' }), 8],
    ['a strategic merge patch', (started) => patch(started, 'application/strategic-merge-patch+json', { x: '2' }), 8],
    [
      'an update',
      ({ registry }) => registry.update(CONFIG_MAPS, configMap('a', { x: '2' }, { namespace: 'default' })),
      8,
    ],
  ])('%s yields to the event loop between its steps', async (_what, call, atLeast) => {
    const started = await startRegistry();
    await apply(started, 'me', { x: '1' });
    slowClock();
    expect(await turnsDuring(() => call(started))).toBeGreaterThanOrEqual(atLeast);
  });
});

/** After isBusy(true), another writer precedes each of the next 20 writes of the ConfigMap `a`. */
function busyStore(): { store: Store; isBusy: (busy: boolean) => void; raced: () => number } {
  const inner = createMemoryStore();
  let left = 0;
  let raced = 0;
  const txn: Store['txn'] = async (wanted) => {
    const key = wanted.compare[0]?.key ?? '';
    const before = key.endsWith('/default/a') && left-- > 0 ? await inner.get(key) : undefined;
    if (before !== undefined) {
      raced++;
      await inner.txn({ compare: [], puts: [{ key, value: before.value }] });
    }
    return inner.txn(wanted);
  };
  return {
    store: { ...inner, txn },
    isBusy: (busy) => {
      left = busy ? 20 : 0;
    },
    raced: () => raced,
  };
}

describe('writes that lose races', () => {
  test.each([
    ['a short change', () => {}],
    ['a long change', slowClock],
  ])('%s that loses many races against other writers finally succeeds', async (_what, prepare) => {
    const { store, isBusy, raced } = busyStore();
    const started = await startRegistry({ store });
    await apply(started, 'me', { x: '1' });
    prepare();
    isBusy(true);
    expect(await patch(started, 'application/merge-patch+json', { x: '2' })).toMatchObject({ data: { x: '2' } });
    expect(raced()).toBe(20);
    expect(await started.registry.get(CONFIG_MAPS, 'default', 'a')).toMatchObject({ data: { x: '2' } });
  });
});

test('concurrent long changes succeed, even if another long change fails', async () => {
  const started = await startRegistry();
  await apply(started, 'me', { x: '1' });
  slowClock();
  const names = Array.from({ length: 10 }, (_, index) => `k${index}`);
  await Promise.all([
    ...names.map((name) => patch(started, 'application/merge-patch+json', { [name]: '1' })),
    failure(started.registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', { data: 1 }, {})),
  ]);
  const { data } = (await started.registry.get(CONFIG_MAPS, 'default', 'a')) as { data?: object };
  expect(Object.keys(data ?? {}).sort()).toEqual([...names, 'x']);
});

test('a short change does not wait for other long work, but a long change does', async () => {
  const started = await startRegistry();
  await apply(started, 'me', { x: '1' });
  const long = longWork();
  await long.begin();
  await patch(started, 'application/merge-patch+json', { y: '1' });
  slowClock();
  let isOver = false;
  const waiting = patch(started, 'application/merge-patch+json', { z: '1' }).finally(() => {
    isOver = true;
  });
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(isOver).toBe(false);
  long.end();
  expect(await waiting).toMatchObject({ data: { x: '1', y: '1', z: '1' } });
});

test('an apply recreates an object that is deleted during the apply', async () => {
  const inner = createMemoryStore();
  let deletes = false;
  const txn: Store['txn'] = async (wanted) => {
    const key = wanted.compare[0]?.key ?? '';
    if (deletes && key.endsWith('/default/a')) {
      deletes = false;
      await inner.txn({ compare: [], deletes: [key] });
    }
    return inner.txn(wanted);
  };
  const started = await startRegistry({ store: { ...inner, txn } });
  const { metadata } = await apply(started, 'me', { x: '1' });
  deletes = true;
  const created = await apply(started, 'me', { x: '2' });
  expect(created).toMatchObject({ data: { x: '2' } });
  expect(created.metadata.uid).not.toBe(metadata.uid);
});

test('an apply conflict lists 1000 fields and counts the others', async () => {
  const started = await startRegistry();
  const data = (value: string) => Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`k${index}`, value]));
  await apply(started, 'me', data('1'));
  const { status } = (await apply(started, 'you', data('2')).catch((error) => error)) as ApiError;
  expect(status).toMatchObject({ code: 409, reason: 'Conflict' });
  expect(status.message).toMatch(
    /^Apply failed with 3000 conflicts: conflicts with "me":\n- \.data\.k0\n.*\nand 2000 more$/s,
  );
  expect(status.details?.causes).toHaveLength(1000);
});

test('if more than ten managers have updated an object, the oldest are merged into ancient-changes', async () => {
  const started = await startRegistry();
  await apply(started, 'me', { x: '1' });
  for (let index = 0; index < 30; index++) {
    started.timers.advance(1000);
    await patch(started, 'application/merge-patch+json', { [`k${index}`]: '1' }, `m${index}`);
  }
  const { metadata } = await started.registry.get(CONFIG_MAPS, 'default', 'a');
  expect(metadata.managedFields?.map(({ manager }) => manager)).toEqual([
    'me',
    'ancient-changes',
    ...Array.from({ length: 9 }, (_, index) => `m${21 + index}`),
  ]);
  const ancient = metadata.managedFields?.[1];
  expect(ancient).toMatchObject({ operation: 'Update', apiVersion: 'v1', time: '2026-01-01T00:00:21Z' });
  const data = (ancient?.fieldsV1 as { 'f:data'?: object } | undefined)?.['f:data'] ?? {};
  expect(Object.keys(data)).toHaveLength(21);
});
