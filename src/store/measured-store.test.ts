import { expect, test } from 'vitest';
import { createMetrics, metricsText } from '../platform/metrics.ts';
import { measuredStore } from './measured-store.ts';
import { createMemoryStore } from './memory/memory-store.ts';

test('measuredStore() forwards calls to the store, measures their duration and counts failures', async () => {
  const metrics = createMetrics();
  const store = measuredStore(createMemoryStore(), metrics);
  const batchSizes: number[] = [];
  const stop = store.watch('a', undefined, (events) => batchSizes.push(events.length));
  const value = new Uint8Array([1]);
  const { revision } = await store.txn({ compare: [], puts: [{ key: 'a', value }] });
  expect(store.revision()).toBe(revision);
  expect(await store.get('a')).toMatchObject({ value, modRevision: revision });
  expect(await store.range({ prefix: 'a' })).toMatchObject({ revision, remaining: 0 });
  await expect(store.get('a', revision + 1)).rejects.toThrow();
  expect(batchSizes).toEqual([1]);
  stop();
  const text = metricsText(await metrics.families());
  for (const [operation, count] of [
    ['txn', 1],
    ['get', 2],
    ['range', 1],
  ]) {
    expect(text).toContain(`lifepod_store_operation_duration_seconds_count{operation="${operation}"} ${count}\n`);
  }
  expect(text).toContain('lifepod_store_operation_errors_total{operation="get"} 1\n');
  await store.close();
});
