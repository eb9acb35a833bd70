import { describe, expect, test } from 'vitest';
import { deployment, rolling, setOf } from './deployment-fixture.ts';
import { currentSize, DESIRED, MAX, maxSurge, maxUnavailable, resized, scaled } from './rollout.ts';

test.each<[number | string, number | string, number, number, number]>([
  ['25%', '25%', 4, 1, 1],
  ['25%', '25%', 10, 3, 2],
  ['25%', '25%', 1, 1, 0],
  ['1%', '1%', 10, 1, 0],
  ['50%', '50%', 5, 3, 2],
  ['200%', '100%', 3, 6, 3],
  [2, 3, 10, 2, 3],
  // Both amounts are 0 after rounding, so one replica may be unavailable.
  [0, '10%', 5, 0, 1],
  [0, 0, 5, 0, 1],
  [0, 5, 2, 0, 2],
  [1, 1, 0, 1, 0],
])('maxSurge %s and maxUnavailable %s of %i replicas are %i and %i', (surge, unavailable, replicas, more, fewer) => {
  const object = deployment({ replicas, strategy: rolling(surge, unavailable) });
  expect([maxSurge(object), maxUnavailable(object)]).toEqual([more, fewer]);
});

test('the strategy Recreate has neither a surge nor unavailable replicas', () => {
  const object = deployment({ strategy: { type: 'Recreate' } });
  expect([maxSurge(object), maxUnavailable(object)]).toEqual([0, 0]);
});

describe('the size that the current ReplicaSet may have', () => {
  test.each<[string, number | undefined, number[], number]>([
    ['all replicas without old ones', undefined, [], 4],
    ['the surge beside all old replicas', undefined, [4], 1],
    ['the room that old ones leave', 1, [3], 2],
    ['the room beside several old ones', 1, [2, 1], 2],
    ['its own size without room', 2, [5], 2],
    ['at most the wanted replicas', 3, [], 4],
  ])('is %s', (_, size, old, expected) => {
    const current = size === undefined ? undefined : setOf({ image: 'v1', size });
    const others = old.map((count, index) => setOf({ image: `old-${index}`, size: count }));
    expect(currentSize({ deployment: deployment(), current, old: others })).toBe(expected);
  });

  test('is the number of wanted replicas with the strategy Recreate', () => {
    const object = deployment({ strategy: { type: 'Recreate' } });
    expect(currentSize({ deployment: object, current: undefined, old: [setOf({ image: 'old', size: 4 })] })).toBe(4);
  });
});

test('a resized ReplicaSet records the wanted and the most replicas, and remains the same object if nothing changes', () => {
  const set = setOf({ image: 'v1', size: 2 });
  const changed = resized(set, 3, deployment());
  expect(changed.spec?.replicas).toBe(3);
  expect(changed.metadata.annotations).toEqual({ [DESIRED]: '4', [MAX]: '5' });
  expect(set.metadata.annotations).toEqual({});
  expect(resized(changed, 3, deployment())).toBe(changed);
  expect(resized(changed, 3, deployment({ replicas: 5 }))).not.toBe(changed);
  expect(scaled(set, 2, deployment())).toBe(set);
});
