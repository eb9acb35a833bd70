/** Writes that take long: others have their turns meanwhile, and what is kept and answered is bounded. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { PatchType } from '../../machinery/backend.ts';
import type { ApiError } from '../../machinery/status.ts';
import type { StoredValue } from '../../store/store.ts';
import { CONFIG_MAPS, configMap, failure, type Started, startRegistry } from './testing.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Each look at the clock finds it 30 ms later: each step takes a turn. */
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

/** How many turns the event loop has until the call is over. */
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

describe('others have turns between the steps of', () => {
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
  ])('%s', async (_what, call, atLeast) => {
    const started = await startRegistry();
    await apply(started, 'me', { x: '1' });
    slowClock();
    expect(await turnsDuring(() => call(started))).toBeGreaterThanOrEqual(atLeast);
  });
});

test('a long change that others always come before is a conflict, and a short one is not', async () => {
  const started = await startRegistry();
  await apply(started, 'me', { x: '1' });
  const { items } = await started.store.range({ prefix: '' });
  const written = items.find(({ key }) => key.endsWith('/default/a'));
  expect(written).toBeDefined();
  const { key, value } = written as StoredValue;
  let writes = 0;
  const race = async (x: string): Promise<unknown> => {
    let over = false;
    const patched = patch(started, 'application/merge-patch+json', { x }).finally(() => {
      over = true;
    });
    patched.catch(() => {});
    for (; !over && writes < 1000; writes++) {
      await started.store.txn({ compare: [], puts: [{ key, value }] });
      await new Promise(setImmediate);
    }
    return patched;
  };
  await race('2');
  slowClock();
  writes = 0;
  expect(await failure(race('3'))).toMatchObject({ code: 409, reason: 'Conflict' });
  expect(writes).toBeLessThan(1000);
});

test('a thousand conflicts are listed, and the others counted', async () => {
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

test('of many updaters the oldest are one', async () => {
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
