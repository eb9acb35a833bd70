import { expect, test } from 'vitest';
import { PODS } from '../api/resources.ts';
import { clientOf } from '../client/typed-client.ts';
import { forbidden } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { hintsFor } from './hints.ts';
import { findLife } from './records.ts';
import { GONE, webAndGone } from './workloads/records-fixture.ts';

/**
 * The registry has the Pod `web` and the record of the deleted Pod `gone`. For each text in `refused`, the first call that begins with the
 * text fails with Forbidden.
 */
async function start(refused: readonly string[] = []) {
  const backend = await webAndGone();
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
