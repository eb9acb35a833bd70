import { expect, it, test } from 'vitest';
import type { KubeObject } from '../machinery/meta.ts';
import { countGeneration, startGeneration } from './generation.ts';

const object = (generation?: number): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'a', ...(generation === undefined ? {} : { generation }) },
});

it('a new object has the generation 1, whatever the client sent', () => {
  const created = object(7);
  startGeneration(created);
  expect(created.metadata.generation).toBe(1);
});

test.each<[string, number | undefined, [unknown, unknown], number]>([
  ['the same state', 3, [{ a: 1 }, { a: 1 }], 3],
  ['another state', 3, [{ a: 2 }, { a: 1 }], 4],
  ['a state in which an empty list is absent', 3, [{ a: [], b: 1 }, { b: 1 }], 3],
  ['another state, if the old object has no generation', undefined, [{ a: 2 }, undefined], 1],
])('an update to %s counts the generation', (_, old, asked, expected) => {
  const updated = object(9);
  countGeneration(updated, object(old), asked);
  expect(updated.metadata.generation).toBe(expected);
});
