import { describe, expect, test } from 'vitest';
import type { DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import { conditionOf, withPause } from './conditions.ts';
import { deployment, NOW, setOf } from './deployment-fixture.ts';
import { rolloutStatus, scalingStatus } from './status.ts';

const ago = (seconds: number): string => formatTime(NOW - seconds * 1000);
const progress = (reason: string, seconds: number, status = 'True'): DeploymentCondition => ({
  type: 'Progressing',
  status,
  reason,
  message: 'before',
  lastUpdateTime: ago(seconds),
  lastTransitionTime: ago(seconds),
});

const DEADLINE = { progressDeadlineSeconds: 100 };
const current = (size: number, available: number, pods = size): ReplicaSet =>
  setOf({ image: 'v1', size, available, pods });
const old = (size: number, available = size): ReplicaSet => setOf({ image: 'old', size, available });

interface State {
  sets: { current: ReplicaSet | undefined; old: ReplicaSet[] };
  before?: DeploymentStatus;
  spec?: Partial<DeploymentSpec>;
}

const decide = ({ sets, before = {}, spec = DEADLINE }: State) => {
  const object = deployment(spec, { generation: 3 }, before);
  return rolloutStatus({ deployment: object, ...sets }, before.conditions ?? [], NOW);
};
const progressOf = (state: State) => conditionOf(decide(state).status.conditions ?? [], 'Progressing');

describe('the counts', () => {
  test('sum up the ReplicaSets, and omit what is 0', () => {
    const { status } = decide({ sets: { current: current(3, 1, 2), old: [old(2)] } });
    expect(status).toMatchObject({
      observedGeneration: 3,
      replicas: 4,
      updatedReplicas: 2,
      readyReplicas: 3,
      availableReplicas: 3,
      unavailableReplicas: 2,
    });
    const { conditions: _, ...none } = decide({ sets: { current: undefined, old: [] } }).status;
    expect(none).toEqual({ observedGeneration: 3 });
  });

  test('keep the number of collisions, and never show fewer than 0 unavailable replicas', () => {
    const { status } = decide({ sets: { current: current(1, 3, 3), old: [] }, before: { collisionCount: 2 } });
    expect(status).toMatchObject({ collisionCount: 2, availableReplicas: 3 });
    expect(status.unavailableReplicas).toBeUndefined();
  });
});

test.each<[number, 'True' | 'False', string, string]>([
  [3, 'True', 'MinimumReplicasAvailable', 'Deployment has minimum availability.'],
  [2, 'False', 'MinimumReplicasUnavailable', 'Deployment does not have minimum availability.'],
])('with %i of 4 replicas and one that may be unavailable, Available is %s', (available, status, reason, message) => {
  const { conditions } = scalingStatus({ deployment: deployment(), current: current(4, available), old: [] }, [], NOW);
  const times = { lastUpdateTime: ago(0), lastTransitionTime: ago(0) };
  expect(conditions).toEqual([{ type: 'Available', status, reason, message, ...times }]);
});

describe('the condition Progressing', () => {
  const SETS = { current: current(4, 2), old: [] };
  const same: DeploymentStatus = { replicas: 4, updatedReplicas: 4, readyReplicas: 2, availableReplicas: 2 };
  const complete = { current: current(4, 4), old: [old(0)] };

  test.each<[string, State, Partial<DeploymentCondition>]>([
    [
      'reports a complete rollout',
      { sets: complete, before: { conditions: [progress('ReplicaSetUpdated', 5)] } },
      { status: 'True', reason: 'NewReplicaSetAvailable', message: 'ReplicaSet "v1" has successfully progressed.' },
    ],
    [
      'reports progress of new Pods',
      { sets: SETS, before: { ...same, updatedReplicas: 3, conditions: [progress('NewReplicaSetCreated', 5)] } },
      { status: 'True', reason: 'ReplicaSetUpdated', message: 'ReplicaSet "v1" is progressing.' },
    ],
    [
      'reports progress of old Pods without a current ReplicaSet',
      { sets: { current: undefined, old: [old(3)] }, before: { replicas: 4, readyReplicas: 3, availableReplicas: 3 } },
      { reason: 'ReplicaSetUpdated', message: 'Deployment "web" is progressing.' },
    ],
    [
      'reports each progress at its time, but keeps the time of the transition',
      { sets: SETS, before: { ...same, availableReplicas: 1, conditions: [progress('ReplicaSetUpdated', 50)] } },
      { reason: 'ReplicaSetUpdated', lastUpdateTime: ago(0), lastTransitionTime: ago(50) },
    ],
    [
      'recovers from a missed deadline',
      {
        sets: SETS,
        before: { ...same, readyReplicas: 1, conditions: [progress('ProgressDeadlineExceeded', 50, 'False')] },
      },
      { status: 'True', reason: 'ReplicaSetUpdated', lastTransitionTime: ago(0) },
    ],
    [
      'remains before the deadline',
      { sets: SETS, before: { ...same, conditions: [progress('ReplicaSetUpdated', 99)] } },
      progress('ReplicaSetUpdated', 99),
    ],
    [
      'reports a missed deadline',
      { sets: SETS, before: { ...same, conditions: [progress('ReplicaSetUpdated', 100)] } },
      {
        status: 'False',
        reason: 'ProgressDeadlineExceeded',
        message: 'ReplicaSet "v1" has timed out progressing.',
        lastTransitionTime: ago(0),
      },
    ],
    [
      'remains after a complete rollout if Pods fail later',
      { sets: SETS, before: { ...same, availableReplicas: 4, conditions: [progress('NewReplicaSetAvailable', 500)] } },
      progress('NewReplicaSetAvailable', 500),
    ],
    [
      'remains after a missed deadline',
      { sets: SETS, before: { ...same, conditions: [progress('ProgressDeadlineExceeded', 50, 'False')] } },
      progress('ProgressDeadlineExceeded', 50, 'False'),
    ],
  ])('%s', (_, state, expected) => expect(progressOf(state)).toMatchObject(expected));

  test.each([undefined, 2 ** 31 - 1])('is removed without a deadline (%s)', (progressDeadlineSeconds) => {
    const spec = progressDeadlineSeconds === undefined ? {} : { progressDeadlineSeconds };
    expect(
      progressOf({ sets: SETS, spec, before: { conditions: [progress('ReplicaSetUpdated', 5)] } }),
    ).toBeUndefined();
  });

  test.each<[string, State, number | undefined]>([
    ['after its last update', { sets: SETS, before: { ...same, conditions: [progress('ReplicaSetUpdated', 30)] } }, 70],
    ['no more once the rollout is complete', { sets: complete }, undefined],
    [
      'no more once it was missed',
      { sets: SETS, before: { ...same, conditions: [progress('ProgressDeadlineExceeded', 1, 'False')] } },
      undefined,
    ],
    ['never without progressDeadlineSeconds', { sets: SETS, spec: {} }, undefined],
  ])('has its deadline %s', (_, state, seconds) => {
    expect(decide(state).deadline).toBe(seconds === undefined ? undefined : NOW + seconds * 1000);
  });
});

test.each<[string, boolean, DeploymentCondition[], string | undefined, Partial<DeploymentSpec>]>([
  ['is paused', true, [progress('ReplicaSetUpdated', 5)], 'DeploymentPaused', DEADLINE],
  ['is paused at its creation', true, [], 'DeploymentPaused', DEADLINE],
  ['is resumed', false, [progress('DeploymentPaused', 5, 'Unknown')], 'DeploymentResumed', DEADLINE],
  ['remains paused', true, [progress('DeploymentPaused', 5, 'Unknown')], 'DeploymentPaused', DEADLINE],
  [
    'is paused after a missed deadline',
    true,
    [progress('ProgressDeadlineExceeded', 5)],
    'ProgressDeadlineExceeded',
    DEADLINE,
  ],
  ['is paused without a deadline', true, [], undefined, {}],
])('the reason of Progressing of a Deployment that %s', (_, paused, before, reason, spec) => {
  const conditions = withPause(before, deployment({ ...spec, paused }), NOW);
  expect(conditionOf(conditions, 'Progressing')?.reason).toBe(reason);
});

describe('the condition ReplicaFailure', () => {
  const failing = (set: ReplicaSet, message: string): ReplicaSet => ({
    ...set,
    status: {
      replicas: 0,
      conditions: [
        { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message, lastTransitionTime: ago(9) },
      ],
    },
  });
  const failureIn = (state: State) => conditionOf(decide(state).status.conditions ?? [], 'ReplicaFailure');

  test('is that of the current ReplicaSet, or else of an old one, with its time', () => {
    const sets = { current: failing(current(1, 0), 'new'), old: [failing(old(1), 'old')] };
    const times = { lastUpdateTime: ago(9), lastTransitionTime: ago(9) };
    expect(failureIn({ sets })).toMatchObject({ status: 'True', reason: 'FailedCreate', message: 'new', ...times });
    expect(failureIn({ sets: { ...sets, current: current(1, 0) } })).toMatchObject({ message: 'old' });
  });

  test('is removed once no ReplicaSet fails', () => {
    const before = { conditions: [{ ...progress('FailedCreate', 5), type: 'ReplicaFailure' }] };
    expect(failureIn({ sets: { current: current(1, 0), old: [] }, before })).toBeUndefined();
  });
});
