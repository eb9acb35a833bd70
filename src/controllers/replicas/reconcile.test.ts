import { expect, test } from 'vitest';
import { BURST, REVISION, reconcile } from './reconcile.ts';
import { NOW, podInState, replicaSet } from './replicas-fixture.ts';

const pods = (count: number) => Array.from({ length: count }, (_, index) => podInState(`p${index}`));
const shown = (spec: object, count: number, metadata = {}, siblings: ReturnType<typeof replicaSet>[] = []) => {
  const owner = replicaSet(spec, metadata);
  const { create, remove, reason } = reconcile({ owner, pods: pods(count), siblings, related: () => [], now: NOW });
  return { create, remove: remove.length, reason };
};
const nothing = { create: 0, remove: 0, reason: 'ScaledDown' };

test.each([
  ['missing Pods are created', { replicas: 3 }, 1, { ...nothing, create: 2 }],
  ['surplus Pods are deleted', { replicas: 1 }, 3, { ...nothing, remove: 2 }],
  ['all Pods are deleted if no replicas are wanted', { replicas: 0 }, 3, { ...nothing, remove: 3 }],
  ['nothing happens if the number of Pods is right', { replicas: 2 }, 2, nothing],
  ['absent replicas mean one', { replicas: undefined }, 0, { ...nothing, create: 1 }],
  ['at most 500 Pods are created at a time', { replicas: 2000 }, 0, { ...nothing, create: BURST }],
  ['at most 500 Pods are deleted at a time', { replicas: 100 }, 700, { ...nothing, remove: BURST }],
])('%s', (_, spec, count, expected) => expect(shown(spec, count)).toEqual(expected));

test.each([1, 0, 3])('an owner that is being deleted creates and deletes nothing: %s replicas', (replicas) => {
  const marked = podInState('m', {
    defers: true,
    conditions: [{ type: 'DeletionReason', status: 'True', reason: 'ScaledDown' }],
  });
  const owner = replicaSet({ replicas }, { deletionTimestamp: '2026-01-31T12:00:00Z' });
  const decision = reconcile({ owner, pods: [...pods(1), marked], siblings: [], related: () => [], now: NOW });
  expect(decision).toMatchObject({ create: 0, remove: [], unmark: [] });
});

const revision = (text: string) => ({ annotations: { [REVISION]: text } });

test.each([
  ['the Pods of the newest revision are scaled down', '3', ['1', '2'], 'ScaledDown'],
  ['the Pods of an older revision are replaced', '2', ['1', '10'], 'Replaced'],
  ['the Pods of a ReplicaSet without a valid revision are replaced if another has one', 'x', ['1'], 'Replaced'],
])('%s', (_, own, others, reason) => {
  const siblings = others.map((text) => replicaSet({}, revision(text)));
  expect(shown({ replicas: 0 }, 1, revision(own), siblings)).toEqual({ create: 0, remove: 1, reason });
});

test.each([
  ['empties it for a newer revision', 0, '2', 'Replaced'],
  ['is scaled to none', 0, '0', 'ScaledDown'],
  ['is scaled down', 1, '1', 'ScaledDown'],
  ['rolls out the ReplicaSet and is scaled down', 1, '2', 'ScaledDown'],
])('why Pods of the newest ReplicaSet are deleted if its Deployment %s', (_, replicas, desired, reason) => {
  const metadata = { annotations: { [REVISION]: '1', 'deployment.kubernetes.io/desired-replicas': desired } };
  expect(shown({ replicas }, 2, metadata).reason).toBe(reason);
});

test.each([
  ['ScaledDown', 'True', true],
  ['Replaced', 'True', true],
  ['OwnerDeleted', 'True', false],
  ['ScaledDown', 'False', false],
] as const)(
  'a Pod that is kept and has the reason %s with the status %s is unmarked: %s',
  (reason, status, expected) => {
    const marked = podInState('m', {
      readySeconds: 60,
      defers: true,
      conditions: [{ type: 'DeletionReason', status, reason }],
    });
    const unmarked = (replicas: number): boolean =>
      reconcile({
        owner: replicaSet({ replicas }),
        pods: [...pods(1), marked],
        siblings: [],
        related: () => [],
        now: NOW,
      }).unmark.includes(marked);
    expect([unmarked(2), unmarked(1), unmarked(0)]).toEqual([expected, expected, false]);
  },
);

test('the related Pods are read only if some Pods are deleted and others are kept', () => {
  let reads = 0;
  const related = (): [] => {
    reads += 1;
    return [];
  };
  for (const replicas of [0, 2, 3])
    reconcile({ owner: replicaSet({ replicas }), pods: pods(2), siblings: [], related, now: NOW });
  expect(reads).toBe(0);
  reconcile({ owner: replicaSet({ replicas: 1 }), pods: pods(2), siblings: [], related, now: NOW });
  expect(reads).toBe(1);
});
