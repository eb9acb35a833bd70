import { expect, test } from 'vitest';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../machinery/meta.ts';
import { DependencyGraph, deletionState, isIrrelevant } from './graph.ts';

const owner = (uid: string, changes: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: uid,
  uid,
  ...changes,
});
const object = (uid: string, owners: OwnerReference[] = [], metadata: Partial<ObjectMeta> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: uid, namespace: 'a', uid, ownerReferences: owners, ...metadata },
});
const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const FOREGROUND = { ...DELETED, finalizers: ['foregroundDeletion'] };
const graphOf = (...objects: KubeObject[]): DependencyGraph => {
  const graph = new DependencyGraph();
  for (const each of objects) graph.put(each);
  return graph;
};

test.each<[string, KubeObject[], KubeObject, string[]]>([
  ['a new object without owners', [], object('x'), []],
  ['a new object with a known owner', [object('o')], object('x', [owner('o')]), []],
  ['a new object with an unknown owner', [], object('x', [owner('o')]), ['x']],
  ['a new object whose owner has another name', [object('o')], object('x', [owner('o', { name: 'p' })]), ['x']],
  [
    'a new object whose owner waits for its dependents',
    [object('o', [], FOREGROUND)],
    object('x', [owner('o')]),
    ['x'],
  ],
  ['an owner that becomes known', [object('x', [owner('o')])], object('o'), []],
  ['an owner that becomes known by another name', [object('x', [owner('o', { name: 'p' })])], object('o'), ['x']],
  ['an object that gets an unknown owner', [object('x')], object('x', [owner('o')]), ['x']],
  ['an object that loses an owner', [object('o'), object('x', [owner('o')])], object('x'), []],
  [
    'an object with a finalizer that is deleted',
    [object('x')],
    object('x', [], { ...DELETED, finalizers: ['x.io/y'] }),
    [],
  ],
  [
    'an object that orphans its dependents',
    [object('x')],
    object('x', [], { ...DELETED, finalizers: ['orphan'] }),
    ['x'],
  ],
  [
    'an object that deletes its dependents first',
    [object('o'), object('x', [owner('o')]), object('y', [owner('o')])],
    object('o', [], FOREGROUND),
    ['o', 'x', 'y'],
  ],
  [
    'an object that no longer blocks its waiting owner',
    [object('o', [], FOREGROUND), object('x', [owner('o', { blockOwnerDeletion: true })])],
    object('x', [owner('o', { blockOwnerDeletion: false })]),
    ['x', 'o'],
  ],
])('%s', (_, before, change, expected) => {
  expect(graphOf(...before).put(change).examine).toEqual(expected);
});

test('the deletion of an object concerns its dependents and its waiting owners', () => {
  const graph = graphOf(
    object('o', [], FOREGROUND),
    object('p'),
    object('x', [owner('o'), owner('p')]),
    object('y', [owner('x')]),
  );
  expect(graph.remove('x').examine).toEqual(['y', 'o']);
  expect(graph.remove('x').examine).toEqual([]);
  expect(graph.dependentsOf('o')).toEqual([]);
});

test('a reference to an owner in another namespace is reported, whichever object is known first', () => {
  const dependent = object('x', [owner('o')], { namespace: 'b' });
  const reported = [graphOf(object('o')).put(dependent), graphOf(dependent).put(object('o'))];
  for (const { examine, foreign } of reported) {
    expect(examine).toEqual(['x']);
    expect(foreign).toMatchObject([{ dependent: { uid: 'x' }, owner: { uid: 'o' } }]);
  }
});

test('a reference to a cluster-scoped owner is not reported', () => {
  const node = object('o', [], { namespace: undefined });
  expect(graphOf(node).put(object('x', [owner('o')]))).toEqual({ examine: [], foreign: [] });
});

test('the start examines objects without a known owner and objects that wait, however the objects were listed', () => {
  const graph = graphOf(
    object('x', [owner('o')]),
    object('o'),
    object('lost', [owner('none')]),
    object('w', [], { ...DELETED, finalizers: ['orphan'] }),
  );
  expect(graph.all().examine).toEqual(['lost', 'w']);
});

test('an object is in a cycle if all objects of the cycle wait for their dependents and block each other', () => {
  const blocking = (uid: string) => owner(uid, { blockOwnerDeletion: true });
  const cycle = [
    object('x', [blocking('z')], FOREGROUND),
    object('y', [blocking('x')], FOREGROUND),
    object('z', [blocking('y')], FOREGROUND),
  ];
  const tail = object('tail', [blocking('z')], FOREGROUND);
  const graph = graphOf(...cycle, tail);
  expect(['x', 'y', 'z', 'tail'].map((uid) => graph.isInCycle(uid))).toEqual([true, true, true, false]);
  graph.put(object('y', [owner('x')], FOREGROUND));
  expect(graph.isInCycle('x')).toBe(false);
  graph.put(object('y', [blocking('x')]));
  expect(graph.isInCycle('x')).toBe(false);
});

test('nothing is concluded from the removal of a kind', () => {
  const graph = graphOf(object('o'), object('x', [owner('o')]));
  graph.removeKind('v1', 'ConfigMap');
  expect([graph.get('o'), graph.dependentsOf('o')]).toEqual([undefined, []]);
});

test.each<[string, Partial<ObjectMeta>, boolean]>([
  ['a label', { labels: { a: 'b' } }, true],
  ['a copy of the same owner', { ownerReferences: [owner('o')] }, true],
  ['another owner', { ownerReferences: [owner('p')] }, false],
  ['an owner that is blocked', { ownerReferences: [owner('o', { blockOwnerDeletion: true })] }, false],
  ['a deletion', DELETED, false],
])('whether an update is relevant: %s', (_, change, expected) => {
  const old = object('x', [owner('o')]);
  expect(isIrrelevant({ ...old, metadata: { ...old.metadata, ...change } }, old)).toBe(expected);
});

test.each<[Partial<ObjectMeta>, string]>([
  [{ finalizers: ['orphan'] }, 'living'],
  [DELETED, 'beingDeleted'],
  [{ ...DELETED, finalizers: ['orphan'] }, 'orphaning'],
  [FOREGROUND, 'deletingDependents'],
])('the state of an object with %j is %s', (metadata, expected) => {
  expect(deletionState(object('x', [], metadata))).toBe(expected);
});
