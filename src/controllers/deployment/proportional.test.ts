import { describe, expect, test } from 'vitest';
import { deployment, rolling, type SetState, setOf } from './deployment-fixture.ts';
import { isScaling, scalingStep } from './proportional.ts';
import { DESIRED, MAX, sizeOf } from './rollout.ts';

const current = (size: number, more: Partial<SetState> = {}) => setOf({ image: 'v1', size, ageSeconds: 1, ...more });
const old = (number: number, size: number, more: Partial<SetState> = {}) =>
  setOf({ image: `old-${number}`, size, ageSeconds: 100 - number, ...more });

interface Case {
  from: number;
  to: number;
  surge?: number | string;
  current: number | undefined;
  /** The sizes of the old ReplicaSets, the oldest first. */
  old: readonly number[];
  expected: readonly (number | undefined)[];
}

/** Annotates the ReplicaSets as an earlier scaling with the same surge does. */
const sizesAfter = ({ from, to, surge = 0, current: size, old: sizes }: Case): (number | undefined)[] => {
  const strategy = rolling(surge, 1);
  const annotated = { desired: from, max: from + (typeof surge === 'number' ? surge : 0) };
  const after = scalingStep({
    deployment: deployment({ replicas: to, strategy }),
    current: size === undefined ? undefined : current(size, { ...annotated, available: 0 }),
    old: sizes.map((count, index) => old(index, count, annotated)),
  });
  return [after.current, ...after.old].map((set) => (set === undefined ? undefined : sizeOf(set)));
};

test.each<[string, Case]>([
  ['the only one, up', { from: 10, to: 12, current: 10, old: [], expected: [12] }],
  ['the only one, down', { from: 10, to: 5, current: 10, old: [], expected: [5] }],
  ['an old one, if it is the only active one', { from: 10, to: 12, current: 0, old: [10], expected: [0, 12] }],
  ['an old one without a current one', { from: 10, to: 5, current: undefined, old: [10], expected: [undefined, 5] }],
  ['the current one, if none is active', { from: 0, to: 6, current: 0, old: [0, 0], expected: [6, 0, 0] }],
  [
    'the newest old one, if none is active and no current one exists',
    { from: 0, to: 6, current: undefined, old: [0, 0], expected: [undefined, 0, 6] },
  ],
  ['two equal ones, up', { from: 10, to: 20, current: 5, old: [5], expected: [10, 10] }],
  ['two equal ones, down', { from: 10, to: 4, current: 5, old: [5], expected: [2, 2] }],
  ['two in proportion, up', { from: 10, to: 15, current: 8, old: [2], expected: [12, 3] }],
  ['two in proportion, down', { from: 10, to: 5, current: 8, old: [2], expected: [4, 1] }],
  ['three in proportion, up', { from: 10, to: 20, current: 5, old: [2, 3], expected: [10, 4, 6] }],
  ['three, with the rest for the largest', { from: 10, to: 11, current: 4, old: [3, 3], expected: [5, 3, 3] }],
  ['two with one more replica: the newest', { from: 10, to: 11, current: 5, old: [5], expected: [6, 5] }],
  ['two with one replica less: the oldest', { from: 10, to: 9, current: 5, old: [5], expected: [5, 4] }],
  ['to zero', { from: 10, to: 0, surge: 2, current: 5, old: [4, 3], expected: [0, 0, 0] }],
  ['with the surge', { from: 10, to: 20, surge: 2, current: 4, old: [8], expected: [7, 15] }],
  ['no inactive ones', { from: 10, to: 20, current: 5, old: [0, 5], expected: [10, 0, 10] }],
])('a change of the replicas scales %s', (_, given) => expect(sizesAfter(given)).toEqual(given.expected));

test('old ReplicaSets are scaled to 0 once the current one has all replicas available', () => {
  const after = scalingStep({
    deployment: deployment({ replicas: 4 }),
    current: current(4, { desired: 4, max: 5 }),
    old: [old(0, 1), old(1, 0)],
  });
  expect(after.old.map(sizeOf)).toEqual([0, 0]);
});

test('each active ReplicaSet records the new amounts', () => {
  const after = scalingStep({
    deployment: deployment({ replicas: 8 }),
    current: current(2, { desired: 4, max: 5, available: 0 }),
    old: [old(0, 3, { desired: 4, max: 5 })],
  });
  for (const set of [after.current, ...after.old])
    expect(set?.metadata.annotations).toMatchObject({ [DESIRED]: '8', [MAX]: '9' });
});

test('the status of the Deployment replaces a missing record of the amounts', () => {
  const object = deployment({ replicas: 20, strategy: rolling(0, 1) }, {}, { replicas: 10 });
  const after = scalingStep({ deployment: object, current: current(8, { available: 0 }), old: [old(0, 2)] });
  expect([after.current, ...after.old].map((set) => set && sizeOf(set))).toEqual([16, 4]);
});

test('a crash between two writes leaves a state from which the same sizes follow', () => {
  const object = deployment({ replicas: 20, strategy: rolling(0, 1) });
  const before = { desired: 10, max: 10 };
  const rollout = {
    deployment: object,
    current: current(5, { ...before, available: 0 }),
    old: [old(0, 2, before), old(1, 3, before)],
  };
  const whole = scalingStep(rollout);
  const [first, second] = whole.old;
  if (first === undefined || second === undefined) throw new Error('there are two old ReplicaSets');
  for (const half of [
    { ...rollout, current: whole.current },
    { ...rollout, old: [first, ...rollout.old.slice(1)] },
    { ...rollout, current: whole.current, old: [...rollout.old.slice(0, 1), second] },
  ]) {
    expect(isScaling(half)).toBe(true);
    expect(scalingStep(half)).toEqual(whole);
  }
  expect(isScaling(whole)).toBe(false);
});

describe('a scaling', () => {
  test.each<[string, Partial<SetState>, boolean]>([
    ['is a change of the recorded replicas', { desired: 3 }, true],
    ['is no change of the same replicas', { desired: 4 }, false],
    ['is not seen without a record', {}, false],
    ['ignores ReplicaSets without replicas', { desired: 3, size: 0 }, false],
  ])('%s', (_, state, expected) => {
    expect(isScaling({ deployment: deployment(), current: current(4, state), old: [] })).toBe(expected);
  });
});

test('a second scaling of the only ReplicaSet changes nothing', () => {
  const rollout = { deployment: deployment(), current: current(4, { desired: 4, max: 5 }), old: [] };
  expect(scalingStep(rollout)).toBe(rollout);
});
