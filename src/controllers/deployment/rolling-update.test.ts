import { expect, test } from 'vitest';
import { deployment, rolling, setOf } from './deployment-fixture.ts';
import { rollingStep } from './rolling-update.ts';
import { sizeOf } from './rollout.ts';

type Counts = readonly [size: number, available: number];

interface Case {
  surge: number | string;
  unavailable: number | string;
  replicas: number;
  current: Counts;
  /** The oldest first. */
  old: readonly Counts[];
  expected: readonly [current: number, ...old: number[]];
}

const sizes = ({ surge, unavailable, replicas, current, old }: Case): number[] => {
  const after = rollingStep({
    deployment: deployment({ replicas, strategy: rolling(surge, unavailable) }),
    current: setOf({ image: 'v1', size: current[0], available: current[1] }),
    old: old.map(([size, available], index) => setOf({ image: `old-${index}`, size, available })),
  });
  return [after.current, ...after.old].map((set) => (set === undefined ? -1 : sizeOf(set)));
};

const four = { surge: 1, unavailable: 1, replicas: 4 };
const ten = { surge: 0, unavailable: 2, replicas: 10 };

test.each<[string, Case]>([
  ['grows by the surge first', { ...four, current: [0, 0], old: [[4, 4]], expected: [1, 4] }],
  ['does not grow above the surge', { ...four, current: [1, 0], old: [[4, 4]], expected: [1, 3] }],
  ['waits until new Pods are available', { ...four, current: [2, 0], old: [[3, 3]], expected: [2, 3] }],
  ['shrinks old ones for each available new Pod', { ...four, current: [2, 1], old: [[3, 3]], expected: [2, 2] }],
  ['grows into the room of old ones', { ...four, current: [2, 2], old: [[1, 1]], expected: [4, 1] }],
  ['ends with the wanted replicas', { ...four, current: [4, 4], old: [[1, 1]], expected: [4, 0] }],
  ['changes nothing at the end', { ...four, current: [4, 4], old: [[0, 0]], expected: [4, 0] }],
  ['shrinks a current one that is too large', { ...four, current: [6, 6], old: [], expected: [4] }],
  ['shrinks old ones first without a surge', { ...ten, current: [0, 0], old: [[10, 10]], expected: [0, 8] }],
  ['grows without a surge', { ...ten, current: [0, 0], old: [[8, 8]], expected: [2, 8] }],
  [
    'ignores Pods that an old one still counts after it was scaled down',
    { ...ten, current: [2, 1], old: [[8, 10]], expected: [2, 7] },
  ],
  [
    'shrinks the oldest first',
    {
      ...four,
      current: [3, 3],
      old: [
        [1, 1],
        [1, 1],
      ],
      expected: [3, 0, 0],
    },
  ],
  [
    'replaces the unavailable replicas of old ones first',
    {
      ...ten,
      current: [0, 0],
      old: [
        [5, 5],
        [5, 3],
      ],
      expected: [0, 5, 3],
    },
  ],
  [
    'shrinks both unavailable and available replicas',
    {
      surge: 0,
      unavailable: 3,
      replicas: 10,
      current: [0, 0],
      old: [
        [5, 5],
        [5, 4],
      ],
      expected: [0, 3, 4],
    },
  ],
  [
    'removes no more unavailable replicas than the limit',
    { ...ten, current: [0, 0], old: [[10, 0]], expected: [0, 8] },
  ],
  ['keeps available Pods without any room', { ...ten, current: [2, 0], old: [[8, 8]], expected: [2, 8] }],
  ['removes all old ones of 0 replicas', { ...four, replicas: 0, current: [0, 0], old: [[3, 3]], expected: [0, 0] }],
])('a rolling update %s', (_, given) => expect(sizes(given)).toEqual(given.expected));

test('no old ReplicaSet shrinks before each ReplicaSet that was scaled has reported its status', () => {
  const object = deployment();
  const current = setOf({ image: 'v1', size: 2, available: 2 });
  const old = setOf({ image: 'old', size: 3 });
  const generation = (set: typeof old, of: number) => ({ ...set, metadata: { ...set.metadata, generation: of } });
  const observed = { ...current, status: { replicas: 2, availableReplicas: 2, observedGeneration: 5 } };
  const shrinks = (set: typeof old): boolean => {
    const rollout = { deployment: object, current: set, old: [old] };
    return rollingStep(rollout) !== rollout;
  };
  expect([shrinks(generation(observed, 5)), shrinks(generation(observed, 6))]).toEqual([true, false]);
});
