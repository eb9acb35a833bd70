import { expect, test } from 'vitest';
import { type Decision, type Dependent, decide, type Examined, type OwnerState } from './decision.ts';

const KEEP: Decision = { action: 'keep' };
const remove = (propagationPolicy: 'Background' | 'Foreground' | 'Orphan'): Decision => ({
  action: 'delete',
  propagationPolicy,
});
const owners = (...states: OwnerState[]) => states.map((state, index) => ({ uid: `o${index}`, state }));
const dependent = (uid: string, isBlocking: boolean, state: Dependent['state'] = 'living'): Dependent => ({
  uid,
  state,
  owners: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x', blockOwnerDeletion: isBlocking }],
});

test.each<[string, Partial<Examined>, Decision]>([
  ['an object without owners is kept', {}, KEEP],
  ['an object with a solid owner is kept', { owners: owners('solid') }, KEEP],
  ['an object without a living owner is deleted', { owners: owners('absent', 'absent') }, remove('Background')],
  ['an object with an owner of an unknown kind is kept', { owners: owners('absent', 'unknown') }, KEEP],
  [
    'an object with a solid owner loses the references to the others',
    { owners: owners('absent', 'solid', 'waiting') },
    { action: 'removeOwners', uids: ['o0', 'o2'] },
  ],
  [
    'an object without dependents is deleted in the background for its waiting owner',
    { owners: owners('waiting') },
    remove('Background'),
  ],
  [
    'an object with dependents is deleted in the foreground for its waiting owner',
    { owners: owners('absent', 'waiting'), dependents: [dependent('d', false)] },
    remove('Foreground'),
  ],
  [
    'an object with dependents is deleted in the background if no owner waits',
    { owners: owners('absent'), dependents: [dependent('d', true)] },
    remove('Background'),
  ],
  [
    'the finalizer orphan of an object decides how it is deleted',
    { owners: owners('absent'), metadata: { uid: 'x', finalizers: ['orphan'] } },
    remove('Orphan'),
  ],
  [
    'the finalizer foregroundDeletion of an object decides how it is deleted',
    { owners: owners('waiting'), metadata: { uid: 'x', finalizers: ['foregroundDeletion'] } },
    remove('Foreground'),
  ],
  ['an object that is being deleted is left alone', { state: 'beingDeleted', owners: owners('absent') }, KEEP],
  [
    'an object that orphans its dependents waits for none of them',
    { state: 'orphaning', dependents: [dependent('d', true)] },
    { action: 'orphan', dependents: [dependent('d', true)] },
  ],
  [
    'an object in foreground deletion waits for the dependents that block it',
    {
      state: 'deletingDependents',
      dependents: [dependent('a', true), dependent('b', false), dependent('c', true, 'beingDeleted')],
    },
    { action: 'await', uids: ['a', 'c'] },
  ],
  [
    'an object in foreground deletion does not hurry dependents that wait themselves',
    { state: 'deletingDependents', dependents: [dependent('a', true, 'deletingDependents')] },
    { action: 'await', uids: [] },
  ],
  [
    'an object in foreground deletion that is part of a cycle stops blocking its owners',
    { state: 'deletingDependents', dependents: [dependent('a', true, 'deletingDependents')], isInCycle: true },
    { action: 'unblock' },
  ],
  [
    'an object in foreground deletion that no dependent blocks is released',
    { state: 'deletingDependents', dependents: [dependent('b', false)] },
    { action: 'removeFinalizer', finalizer: 'foregroundDeletion' },
  ],
])('%s', (_, examined, expected) => {
  expect(
    decide({ metadata: { uid: 'x' }, state: 'living', owners: [], dependents: [], isInCycle: false, ...examined }),
  ).toEqual(expected);
});
