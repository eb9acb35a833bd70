import { describe, expect, test } from 'vitest';
import type { Pod, PodDisruptionBudget, PodDisruptionBudgetSpec } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import { NOW, type PodState, podInState } from '../replicas/replicas-fixture.ts';
import { type OwnerScale, reconcile } from './reconcile.ts';

const budgetOf = (spec: PodDisruptionBudgetSpec, status: object = {}): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web', namespace: 'a', generation: 3 },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0, ...status },
});

const ready: PodState = { readySeconds: 60 };

const ownedBy = (owner: string, pod: Pod): Pod => {
  const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true };
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [reference] } };
};

const podsOf = (readyPods: number, others = 0): Pod[] => [
  ...Array.from({ length: readyPods }, (_, i) => ownedBy('one', podInState(`ready-${i}`, ready))),
  ...Array.from({ length: others }, (_, i) => ownedBy('one', podInState(`other-${i}`))),
];

const scales: Readonly<Record<string, OwnerScale>> = {
  one: { uid: 'one', replicas: 10 },
  two: { uid: 'two', replicas: 5 },
  odd: { problem: 'jobs.batch does not implement the scale subresource' },
};

const decide = (budget: PodDisruptionBudget, pods: readonly Pod[]) =>
  reconcile({ budget, pods, now: NOW, scaleOf: ({ metadata }) => scales[metadata.ownerReferences?.[0]?.uid ?? ''] });

describe('the numbers of a PodDisruptionBudget', () => {
  test.each<
    [string, PodDisruptionBudgetSpec, Pod[], [expected: number, desired: number, healthy: number, allowed: number]]
  >([
    ['minAvailable 2 of 3 ready Pods', { minAvailable: 2 }, podsOf(3), [3, 2, 3, 1]],
    ['minAvailable 2 of 2 ready Pods', { minAvailable: 2 }, podsOf(2, 1), [3, 2, 2, 0]],
    ['minAvailable above the ready Pods', { minAvailable: 5 }, podsOf(2, 1), [3, 5, 2, 0]],
    ['minAvailable 0 without Pods', { minAvailable: 0 }, [], [0, 0, 0, 0]],
    ['minAvailable 50% of the scale', { minAvailable: '50%' }, podsOf(7), [10, 5, 7, 2]],
    ['minAvailable 41%, rounded up', { minAvailable: '41%' }, podsOf(7), [10, 5, 7, 2]],
    ['minAvailable 0%', { minAvailable: '0%' }, podsOf(1), [10, 0, 1, 1]],
    ['maxUnavailable 3 of the scale', { maxUnavailable: 3 }, podsOf(9), [10, 7, 9, 2]],
    ['maxUnavailable 0', { maxUnavailable: 0 }, podsOf(10), [10, 10, 10, 0]],
    ['maxUnavailable 25%, rounded up', { maxUnavailable: '25%' }, podsOf(9), [10, 7, 9, 2]],
    ['maxUnavailable 100%', { maxUnavailable: '100%' }, podsOf(9), [10, 0, 9, 9]],
    ['maxUnavailable above the scale', { maxUnavailable: 20 }, podsOf(9), [10, 0, 9, 9]],
    ['no amount', {}, podsOf(3), [0, 0, 3, 0]],
    [
      'the Pods of two owners',
      { maxUnavailable: '20%' },
      [...podsOf(2), ownedBy('two', podInState('x', ready)), podInState('without-owner', ready)],
      [15, 12, 4, 0],
    ],
  ])('%s', (_, spec, pods, [expectedPods, desiredHealthy, currentHealthy, disruptionsAllowed]) => {
    const { status } = decide(budgetOf(spec), pods);
    const numbers = { expectedPods, desiredHealthy, currentHealthy, disruptionsAllowed };
    expect(status).toEqual({
      observedGeneration: 3,
      ...numbers,
      conditions: [
        {
          type: 'DisruptionAllowed',
          ...(disruptionsAllowed > 0
            ? { status: 'True', reason: 'SufficientPods' }
            : { status: 'False', reason: 'InsufficientPods' }),
          message: '',
          observedGeneration: 3,
          lastTransitionTime: formatTime(NOW),
        },
      ],
    });
  });
});

const deleted = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: formatTime(NOW) } });
const termination = { reason: 'Completed', startedAt: '2026-01-31T11:59:00.000000Z' };

test.each<[string, Pod, number]>([
  ['is ready', podInState('x', ready), 1],
  ['is not ready', podInState('x'), 0],
  ['is being deleted', deleted(podInState('x', ready)), 0],
  ['runs its defer containers without being deleted', podInState('x', { ...ready, phase: 'Terminating' }), 0],
  [
    'runs its defer containers in the phase Running',
    { ...podInState('x', ready), status: { ...podInState('x', ready).status, termination } as Pod['status'] },
    0,
  ],
])('a Pod that %s counts as %s', (_, pod, healthy) => {
  expect(decide(budgetOf({ minAvailable: 1 }), [pod]).status.currentHealthy).toBe(healthy);
});

const ago = (seconds: number): string => formatTime(NOW - seconds * 1000);

describe('disrupted Pods', () => {
  const disruptedPods = { 'ready-0': ago(30), 'ready-1': ago(90), 'ready-2': ago(120), gone: ago(1) };

  test('a Pod in disruptedPods counts as disrupted for two minutes, and the status is decided again when the first becomes stale', () => {
    const { status, recheckAt, events } = decide(budgetOf({ minAvailable: 2 }, { disruptedPods }), podsOf(5));
    expect(status).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1 });
    expect(status.disruptedPods).toEqual({ 'ready-0': ago(30), 'ready-1': ago(90) });
    expect(recheckAt).toBe(NOW + 30_000);
    expect(events).toMatchObject([
      {
        object: { metadata: { name: 'ready-2' } },
        type: 'Warning',
        reason: 'NotDeleted',
        message: "Pod was expected by PDB a/web to be deleted but it wasn't",
      },
    ]);
  });

  test('a Pod that is being deleted leaves disruptedPods', () => {
    const pods = podsOf(2).map((pod, index) => (index === 0 ? deleted(pod) : pod));
    const { status, recheckAt } = decide(budgetOf({ minAvailable: 1 }, { disruptedPods: { 'ready-0': ago(1) } }), pods);
    expect(status).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0 });
    expect(status.disruptedPods).toBeUndefined();
    expect(recheckAt).toBeUndefined();
  });
});

describe('the number of expected Pods is not known', () => {
  test.each([
    ['the owner has no scale', 'odd', 'jobs.batch does not implement the scale subresource'],
    ['the owner does not exist', 'absent', 'found no controllers for pod "x"'],
  ])('if %s: no disruption is allowed', (_, owner, problem) => {
    const old = {
      disruptionsAllowed: 4,
      currentHealthy: 9,
      desiredHealthy: 5,
      expectedPods: 10,
      observedGeneration: 2,
    };
    const { status, events } = decide(budgetOf({ maxUnavailable: 1 }, old), [ownedBy(owner, podInState('x', ready))]);
    expect(status).toEqual({
      ...old,
      disruptionsAllowed: 0,
      conditions: [
        {
          type: 'DisruptionAllowed',
          status: 'False',
          reason: 'SyncFailed',
          message: problem,
          observedGeneration: 2,
          lastTransitionTime: formatTime(NOW),
        },
      ],
    });
    expect(events).toMatchObject([
      {
        type: 'Warning',
        reason: 'CalculateExpectedPodCountFailed',
        message: `Failed to calculate the number of expected pods: ${problem}`,
      },
    ]);
  });
});

test('Events report that no Pod matches, and that Pods have no owner', () => {
  expect(decide(budgetOf({ minAvailable: 1 }), []).events).toMatchObject([
    { type: 'Normal', reason: 'NoPods', message: 'No matching pods found' },
  ]);
  const selector = {
    matchLabels: { app: 'web', a: 'b' },
    matchExpressions: [{ key: 'tier', operator: 'In', values: ['x', 'y'] }],
  };
  expect(decide(budgetOf({ maxUnavailable: 1, selector }), [podInState('x')]).events).toMatchObject([
    {
      type: 'Warning',
      reason: 'UnmanagedPods',
      message: expect.stringContaining(
        '(selector: &LabelSelector{MatchLabels:map[string]string{a: b,app: web,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:tier,Operator:In,Values:[x y],},},}) were found to be unmanaged.',
      ),
    },
  ]);
});

test('the condition keeps its lastTransitionTime until its status changes', () => {
  const since = ago(600);
  const condition = { type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods', message: '' };
  const conditions = [{ ...condition, lastTransitionTime: since }];
  const timeWith = (pods: Pod[]) =>
    decide(budgetOf({ minAvailable: 2 }, { conditions }), pods).status.conditions?.[0]?.lastTransitionTime;
  expect(timeWith(podsOf(2))).toBe(since);
  expect(timeWith(podsOf(3))).toBe(formatTime(NOW));
});
