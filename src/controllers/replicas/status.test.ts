import { expect, test } from 'vitest';
import type { ReplicaSetCondition } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import { NOW, podInState, replicaSet, template } from './replicas-fixture.ts';
import { nextAvailableAt, statusOf } from './status.ts';

const at = formatTime(NOW);
const failed = (message: string, reason = 'FailedCreate'): ReplicaSetCondition => ({
  type: 'ReplicaFailure',
  status: 'True',
  lastTransitionTime: at,
  reason,
  message,
});
const other: ReplicaSetCondition = { type: 'Other', status: 'True' };

test('the status counts Pods, and counts of 0 other than replicas are absent', () => {
  const owner = replicaSet({ minReadySeconds: 30 }, { generation: 7 });
  const pods = [
    podInState('not-ready'),
    podInState('ready', { readySeconds: 29 }),
    podInState('available', { readySeconds: 30 }),
    podInState('other-label', { readySeconds: 31, labels: { app: 'other' } }),
  ];
  expect(statusOf({ owner, pods, failure: undefined, now: NOW })).toEqual({
    replicas: 4,
    fullyLabeledReplicas: 3,
    readyReplicas: 3,
    availableReplicas: 2,
    observedGeneration: 7,
  });
  expect(statusOf({ owner, pods: [], failure: undefined, now: NOW })).toEqual({ replicas: 0, observedGeneration: 7 });
});

test('every Pod is fully labeled if the template has no labels', () => {
  const owner = replicaSet({ template: { spec: template.spec } });
  expect(statusOf({ owner, pods: [podInState('p')], failure: undefined, now: NOW }).fullyLabeledReplicas).toBe(1);
});

test.each([
  ['a failure to create adds the condition', [], 'no', 2, [failed('no')]],
  ['a failure to delete adds the condition', [other], 'no', 0, [other, failed('no', 'FailedDelete')]],
  ['a later failure does not change the condition', [failed('first')], 'second', 2, [failed('first')]],
  ['the condition is removed when nothing fails', [failed('no'), other], undefined, 2, [other]],
  ['the last condition is removed together with the list', [failed('no')], undefined, 2, undefined],
])('%s', (_, conditions, failure, replicas, expected) => {
  const owner = { ...replicaSet({ replicas }), status: { replicas: 1, conditions } };
  expect(statusOf({ owner, pods: [podInState('p')], failure, now: NOW }).conditions).toEqual(expected);
});

test('the owner is reconciled again when the next ready Pod becomes available', () => {
  const pods = [
    podInState('not-ready'),
    podInState('available', { readySeconds: 30 }),
    podInState('last', { readySeconds: 10 }),
    podInState('next', { readySeconds: 25 }),
  ];
  expect(nextAvailableAt(replicaSet({ minReadySeconds: 30 }), pods, NOW)).toBe(NOW + 5000);
  expect(nextAvailableAt(replicaSet({ minReadySeconds: 10 }), pods, NOW)).toBeUndefined();
  expect(nextAvailableAt(replicaSet(), pods, NOW)).toBeUndefined();
});
