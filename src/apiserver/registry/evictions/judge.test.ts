import { describe, expect, test } from 'vitest';
import type { Pod, PodDisruptionBudget } from '../../../api/generated/types.ts';
import type { ApiError } from '../../../machinery/status.ts';
import { judge } from './judge.ts';

const NOW = Date.UTC(2026, 0, 31, 12);

const pod = (status: object = {}, metadata: object = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'x', namespace: 'a', labels: { app: 'web' }, ...metadata },
  spec: { containers: [] },
  status: { phase: 'Running', ...status },
});
const READY = { conditions: [{ type: 'Ready', status: 'True' as const }] };

const budget = (status: object = {}, spec: object = {}, name = 'web'): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name, namespace: 'a', generation: 2, resourceVersion: '7' },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  status: {
    disruptionsAllowed: 1,
    currentHealthy: 3,
    desiredHealthy: 2,
    expectedPods: 3,
    observedGeneration: 2,
    ...status,
  },
});

const refused = (...[of, budgets]: [Pod, PodDisruptionBudget[]]) => {
  try {
    judge(of, budgets, NOW);
  } catch (error) {
    return (error as ApiError).status;
  }
  throw new Error('expected a refusal');
};

const FULL = budget({ disruptionsAllowed: 0, currentHealthy: 2 });
const MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget.";

describe('a Pod is evicted without its budget', () => {
  test.each<[string, Pod, boolean]>([
    ['has succeeded', pod({ phase: 'Succeeded' }), false],
    ['has failed', pod({ phase: 'Failed' }), false],
    ['is Pending', pod({ phase: 'Pending' }), true],
    ['is being deleted', pod(READY, { deletionTimestamp: '2026-01-31T12:00:00Z' }), false],
    ['runs its defer containers', pod({ ...READY, phase: 'Terminating' }), false],
    ['has other labels', pod(READY, { labels: { app: 'other' } }), false],
    ['is in another namespace', pod(READY, { namespace: 'b' }), false],
  ])('a Pod is evicted without its budget if the Pod %s', (_, of, isProvisional) => {
    expect(judge(of, [FULL], NOW)).toEqual({ isProvisional });
  });

  test('a Pod is evicted without the budget if the budget has no selector', () => {
    expect(judge(pod(READY), [budget({}, { selector: undefined })], NOW)).toEqual({ isProvisional: false });
  });
});

describe('a ready Pod', () => {
  test('an eviction of a ready Pod takes a disruption from its budget', () => {
    const disruptedPods = { y: '2026-01-31T11:59:00Z' };
    const { charged, isProvisional } = judge(pod(READY), [budget({ disruptionsAllowed: 2, disruptedPods })], NOW);
    expect(isProvisional).toBe(false);
    expect(charged).toMatchObject({ metadata: { resourceVersion: '7' }, status: { disruptionsAllowed: 1 } });
    expect(charged?.status?.disruptedPods).toEqual({ ...disruptedPods, x: '2026-01-31T12:00:00Z' });
    expect(charged?.status?.conditions).toBeUndefined();
  });

  test('an eviction that takes the last disruption sets the condition of the budget', () => {
    const { charged } = judge(pod(READY), [budget()], NOW);
    expect(charged?.status?.conditions).toMatchObject([
      { type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods', observedGeneration: 2 },
    ]);
  });

  test('an eviction is refused with the cause if the budget allows no disruption', () => {
    expect(refused(pod(READY), [FULL])).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: MESSAGE,
      reason: 'TooManyRequests',
      details: {
        causes: [
          { reason: 'DisruptionBudget', message: 'The disruption budget web needs 2 healthy pods and has 2 currently' },
        ],
      },
      code: 429,
    });
  });

  test('an eviction is refused for ten seconds while the controller has not seen the newest budget', () => {
    for (const observedGeneration of [1, undefined])
      expect(refused(pod(READY), [budget({ observedGeneration })])).toMatchObject({
        message: MESSAGE,
        details: {
          retryAfterSeconds: 10,
          causes: [
            {
              reason: 'DisruptionBudget',
              message: 'The disruption budget web is still being processed by the server.',
            },
          ],
        },
        code: 429,
      });
  });

  test('an eviction is refused if several budgets select the Pod', () => {
    expect(refused(pod(READY), [budget(), budget({}, {}, 'other')])).toMatchObject({
      status: 'Failure',
      message: 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
      code: 500,
    });
  });

  test('an eviction is refused if the status of the budget is not valid', () => {
    const many = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`p${i}`, '2026-01-31T12:00:00Z']));
    expect(refused(pod(READY), [budget({ disruptionsAllowed: -1 })])).toMatchObject({
      message: 'poddisruptionbudget.policy "web" is forbidden: pdb disruptions allowed is negative',
      code: 403,
    });
    expect(refused(pod(READY), [budget({ disruptedPods: many })]).message).toBe(
      'poddisruptionbudget.policy "web" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller',
    );
  });
});

describe('a Pod that is not ready', () => {
  const processing = {
    isProvisional: true,
    ifChanged: expect.objectContaining({ message: MESSAGE }),
  };

  test.each<[string, object, object, 'free' | 'charged' | 'refused']>([
    ['enough others are healthy', { disruptionsAllowed: 0, currentHealthy: 2 }, {}, 'free'],
    ['too few others are healthy', { disruptionsAllowed: 0, currentHealthy: 1 }, {}, 'refused'],
    ['no Pod must be healthy', { disruptionsAllowed: 1, desiredHealthy: 0 }, {}, 'charged'],
    [
      'too few others are healthy and the policy is AlwaysAllow',
      { disruptionsAllowed: 0, currentHealthy: 1 },
      { unhealthyPodEvictionPolicy: 'AlwaysAllow' },
      'free',
    ],
    [
      'too few others are healthy and the policy is IfHealthyBudget',
      { disruptionsAllowed: 0, currentHealthy: 1 },
      { unhealthyPodEvictionPolicy: 'IfHealthyBudget' },
      'refused',
    ],
  ])('a Pod that is not ready is judged by its budget and policy: %s', (_, status, spec, result) => {
    const budgets = [budget(status, spec)];
    if (result === 'refused') expect(refused(pod(), budgets).code).toBe(429);
    else if (result === 'free') expect(judge(pod(), budgets, NOW)).toEqual(processing);
    else expect(judge(pod(), budgets, NOW).charged?.status?.disruptionsAllowed).toBe(0);
  });
});
