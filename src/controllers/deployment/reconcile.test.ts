import { describe, expect, test } from 'vitest';
import type { Deployment, DeploymentSpec, Pod, ReplicaSet } from '../../api/generated/types.ts';
import { conditionOf } from './conditions.ts';
import { deployment, NOW, type SetState, setOf } from './deployment-fixture.ts';
import { type Decision, reconcile } from './reconcile.ts';
import { revisionOf } from './revisions.ts';
import { sizeOf } from './rollout.ts';

const set = (image: string, size: number, more: Partial<SetState> = {}): ReplicaSet => setOf({ image, size, ...more });
const decide = (object: Deployment, replicaSets: ReplicaSet[], pods: Record<string, Pod[]> = {}): Decision =>
  reconcile({ deployment: object, replicaSets, podsOf: ({ metadata }) => pods[metadata.name] ?? [], now: NOW });
const writesOf = ({ create, changes, remove }: Decision): string[] => [
  ...(create === undefined ? [] : [`create ${sizeOf(create)}`]),
  ...changes.map(({ from, to }) => `${to.metadata.name} ${sizeOf(from)} to ${sizeOf(to)}`),
  ...remove.map(({ metadata }) => `delete ${metadata.name}`),
];
const reasonOf = ({ status }: Decision): string | undefined =>
  conditionOf(status.conditions ?? [], 'Progressing')?.reason;

const DEADLINE = { progressDeadlineSeconds: 100 };
const RECREATE: Partial<DeploymentSpec> = { strategy: { type: 'Recreate' } };
const known = { revision: 2, desired: 4, max: 5 };

describe('a rolling update', () => {
  test('creates the first ReplicaSet with all replicas', () => {
    const decision = decide(deployment(DEADLINE), []);
    expect(writesOf(decision)).toEqual(['create 4']);
    expect([decision.revision, reasonOf(decision)]).toEqual([1, 'NewReplicaSetCreated']);
    expect(decision.checkAt).toBe(NOW + 100_000);
  });

  test('creates a ReplicaSet beside an old one before it scales the old one down', () => {
    const decision = decide(deployment(), [set('v0', 4, { revision: 3, desired: 4, max: 5 })]);
    expect([writesOf(decision), decision.revision]).toEqual([['create 1'], 4]);
  });

  test('returns to a ReplicaSet with the template, which gets the next revision', () => {
    const object = deployment(DEADLINE, {}, { replicas: 4, readyReplicas: 4, availableReplicas: 4 });
    const decision = decide(object, [set('v1', 0, { revision: 1 }), set('v0', 4, known)]);
    expect(writesOf(decision)).toEqual(['v1 0 to 1']);
    expect([decision.revision, reasonOf(decision)]).toEqual([3, 'FoundNewReplicaSet']);
    expect(revisionOf(decision.changes[0]?.to ?? set('', 0))).toBe(3);
  });

  test('decides nothing but the status once it is complete', () => {
    const sets = [set('v1', 4, { ...known, available: 4 }), set('v0', 0, { revision: 1 })];
    const decision = decide(deployment(DEADLINE), sets);
    expect([writesOf(decision), reasonOf(decision)]).toEqual([[], 'NewReplicaSetAvailable']);
  });

  test('deletes old ReplicaSets only once it is complete', () => {
    const spec = { revisionHistoryLimit: 0 };
    const old = set('v0', 0, { revision: 1 });
    expect(writesOf(decide(deployment(spec), [set('v1', 4, known), old]))).toEqual(['delete v0']);
    expect(writesOf(decide(deployment(spec), [set('v1', 4, { ...known, available: 3 }), old]))).toEqual([]);
  });
});

describe('the strategy Recreate', () => {
  const pod = (phase: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', deletionTimestamp: '2026-01-31T12:00:00Z' },
    status: { phase },
  });

  test.each<[string, ReplicaSet[], Record<string, Pod[]>, string[]]>([
    ['creates the first ReplicaSet', [], {}, ['create 4']],
    ['first scales all old ones to 0', [set('v0', 3, known), set('x', 1, known)], {}, ['v0 3 to 0', 'x 1 to 0']],
    ['waits while an old one counts Pods', [set('v0', 0, { pods: 1 })], {}, []],
    ['waits for a Pod that is being deleted', [set('v0', 0)], { v0: [pod('Running')] }, []],
    ['waits for a Pod in the phase Unknown', [set('v0', 0)], { v0: [pod('Unknown')] }, []],
    ['ignores Pods that have ended', [set('v0', 0)], { v0: [pod('Failed'), pod('Succeeded')] }, ['create 4']],
    ['scales an existing one up', [set('v0', 0, { revision: 1 }), set('v1', 0, known)], {}, ['v1 0 to 4']],
    ['ignores the Pods of the current one', [set('v1', 4, known)], { v1: [pod('Running')] }, []],
  ])('%s', (_, sets, pods, writes) => {
    expect(writesOf(decide(deployment(RECREATE), sets, pods))).toEqual(writes);
  });

  test('deletes old ReplicaSets once it is complete', () => {
    const sets = [set('v1', 4, known), set('v0', 0, { revision: 1 })];
    expect(writesOf(decide(deployment({ ...RECREATE, revisionHistoryLimit: 0 }), sets))).toEqual(['delete v0']);
  });

  test('continues although the replicas have changed while several ReplicaSets were active', () => {
    const before = { revision: 1, desired: 3, max: 3, available: 1 };
    const sets = [set('v1', 2, { ...before, revision: 2 }), set('v0', 2, before)];
    expect(writesOf(decide(deployment(RECREATE), sets))).toEqual(['v0 2 to 0']);
  });
});

describe('a paused Deployment', () => {
  const PAUSED = { ...DEADLINE, paused: true };

  test('creates no ReplicaSet', () => {
    const decision = decide(deployment(PAUSED), [set('v0', 4, known)]);
    expect([writesOf(decision), decision.revision, reasonOf(decision)]).toEqual([[], undefined, 'DeploymentPaused']);
  });

  test('continues no rollout, but scales', () => {
    const sets = [set('v1', 1, known), set('v0', 4, { ...known, revision: 1 })];
    expect(writesOf(decide(deployment(PAUSED), sets))).toEqual([]);
    const scaled = decide(deployment({ ...PAUSED, replicas: 8 }), sets);
    expect(writesOf(scaled)).toEqual(['v0 4 to 7', 'v1 1 to 2']);
  });

  test('deletes old ReplicaSets above the limit', () => {
    const sets = [set('v1', 4, known), set('v0', 0, { revision: 1 })];
    expect(writesOf(decide(deployment({ ...PAUSED, revisionHistoryLimit: 0 }), sets))).toEqual(['delete v0']);
  });
});

test('a change of the replicas scales before the rollout continues', () => {
  const sets = [set('v1', 4, known), set('v0', 1, { ...known, revision: 1, desired: 4 })];
  expect(writesOf(decide(deployment({ replicas: 4 }), sets))).toEqual(['v0 1 to 0']);
  const decision = decide(deployment({ ...DEADLINE, replicas: 6 }), [set('v1', 4, known)]);
  expect([writesOf(decision), reasonOf(decision)]).toEqual([['v1 4 to 6'], undefined]);
});

test('a Deployment that is being deleted only gets its status', () => {
  const object = deployment({}, { deletionTimestamp: '2026-01-31T12:00:00Z' });
  const decision = decide(object, [set('v0', 4)]);
  expect([writesOf(decision), decision.status.replicas]).toEqual([[], 4]);
});
