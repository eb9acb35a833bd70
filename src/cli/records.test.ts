import { expect, test } from 'vitest';
import type { Pod, PodRecord } from '../api/generated/types.ts';
import { POD_RECORDS } from '../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../api/resources.ts';
import { registryBackend } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { forbidden } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { hintsFor } from './hints.ts';
import { findLife } from './records.ts';

const GONE = '0123abcd-0000-4000-8000-000000000000';

/** Starts a registry with the Pod `web` and the record of the Pod `gone`. The calls that begin with one of `refused` are Forbidden once. */
async function start(refused: readonly string[] = []) {
  const backend = await registryBackend();
  await backend.set<Pod>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'a' },
    spec: { containers: [{ name: 'app', image: 'i' }] },
  });
  await backend.set<PodRecord>(POD_RECORDS, {
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: `${GONE}.0`, namespace: 'a' },
    podName: 'gone',
    podUID: GONE,
    transitions: [{ key: 'Gone', type: 'Gone', at: '2026-01-31T12:00:00.000000Z' }],
  });
  for (const begin of refused) backend.failNext(begin, forbidden(PODS, '', 'no'));
  return { find: (reference: string) => findLife(clientOf(backend), 'a', reference, hintsFor({}, {})) };
}

test('an existing Pod is found without its record if the user may not read records', async () => {
  const { find } = await start(['get podrecords']);
  expect(await find('web')).toMatchObject({ name: 'web', records: [], isUnread: true });
  expect((await find('web')).isUnread).toBeUndefined();
});

test('a user of one namespace finds a Pod by its UID there', async () => {
  const { find } = await start(['list pods /', 'list podrecords /']);
  expect(await find('0123abcd')).toMatchObject({ name: 'gone', namespace: 'a', uid: GONE });
});

test.each<[string, string, string]>([
  ['get pods', 'web', 'this user may not read Pods in namespace a: give another namespace with -n, or ask'],
  [
    'list podrecords',
    'gone',
    'no Pod gone in namespace a, and this user may not read the records of Pods in namespace a: ask an administrator for the role view',
  ],
])('a user who may not %s gets a sentence about it', async (refused, reference, sentence) => {
  const { find } = await start([refused]);
  const error = await find(reference).then(undefined, (thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UserError);
  expect((error as Error).message).toContain(sentence);
});
