import { expect, test } from 'vitest';
import type { Job, Pod } from '../../../api/generated/types.ts';
import { firstFailure, type Seen, type SessionState } from '../session-state.ts';
import { isCut, noteCut, withoutCut } from './cut-objects.ts';

const pod = (uid: string, phase: string, isDeleted = false, exitCode = 137): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: uid, uid, ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:30Z' } : {}) },
  spec: { containers: [{ name: 'app', image: 'i' }] },
  status: {
    phase,
    containerStatuses: [
      {
        name: 'app',
        image: 'i',
        imageID: '',
        containerID: 'c',
        ready: false,
        restartCount: 0,
        state: phase === 'Running' ? { running: {} } : { terminated: { exitCode, finishedAt: '2026-01-01T00:00:30Z' } },
      },
    ],
  },
});
const job = (uid: string, condition?: string): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: uid, uid },
  status: { conditions: condition === undefined ? [] : [{ type: condition, status: 'True' }] } as Job['status'],
});

/** Returns the state after a session has seen the versions of its objects, in their order. */
function after(...versions: (Pod | Job | { gone: Pod | Job })[]): SessionState {
  const [pods, jobs, cut] = [new Map<string, Seen<Pod>>(), new Map<string, Seen<Job>>(), new Set<string>()];
  for (const version of versions) {
    const seen = 'gone' in version ? { object: version.gone, isGone: true } : { object: version, isGone: false };
    const uid = seen.object.metadata.uid ?? '';
    const kind = seen.object.kind === 'Job' ? 'jobs' : 'pods';
    const known: Map<string, Seen<Pod | Job>> = kind === 'jobs' ? jobs : pods;
    noteCut(cut, kind, known.get(uid), seen);
    known.set(uid, seen);
  }
  return { isComplete: true, hasEndless: false, ending: new Set([...pods.keys(), ...jobs.keys()]), pods, jobs, cut };
}

test.each<[string, boolean, Parameters<typeof after>]>([
  ['a Pod that has ended', false, [pod('a', 'Running'), pod('a', 'Succeeded')]],
  [
    'a Pod that ends after its deletion',
    true,
    [pod('a', 'Running'), pod('a', 'Running', true), pod('a', 'Failed', true)],
  ],
  ['a Pod whose end is seen together with its deletion', true, [pod('a', 'Running'), pod('a', 'Failed', true)]],
  ['a Pod that is deleted after its end', false, [pod('a', 'Failed'), pod('a', 'Failed', true)]],
  ['a Pod that is removed while it runs', true, [pod('a', 'Running'), { gone: pod('a', 'Running') }]],
  ['a Job that runs', false, [job('j')]],
  ['a Job that is removed before it has finished', true, [job('j'), { gone: job('j') }]],
  ['a Job that is removed after it has finished', false, [job('j', 'Complete'), { gone: job('j', 'Complete') }]],
])('whether a session is cut, with %s: %j', (_, expected, versions) => {
  expect(isCut(after(...versions))).toBe(expected);
});

test('a session is not cut if a Pod of a controller is deleted', () => {
  expect(isCut({ ...after(pod('a', 'Running', true)), ending: new Set(['other']) })).toBe(false);
});

test('only a Pod that has failed before its deletion has failed by itself', () => {
  const cut = [pod('cut', 'Running'), pod('cut', 'Running', true), pod('cut', 'Failed', true)];
  expect(firstFailure(after(...cut))).toMatchObject({ exitCode: 137 });
  expect(firstFailure(withoutCut(after(...cut)))).toBeUndefined();
  const failed = [pod('own', 'Failed', false, 3), pod('own', 'Failed', true, 3)];
  expect(firstFailure(withoutCut(after(...cut, ...failed)))).toMatchObject({ uid: 'own', exitCode: 3 });
});
