import { expect, test } from 'vitest';
import type { Pod, PodRecord } from '../api/generated/types.ts';
import { POD_RECORDS } from '../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../api/resources.ts';
import { clientOf } from '../client/typed-client.ts';
import { forbidden } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { hintsFor } from './hints.ts';
import { findLife, livesOf, transitionsOf } from './records.ts';
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

test.each(['', 'pod/', 'pods/', 'pod/a/b', 'service/web'])('"%s" is not the name of a Pod', async (reference) => {
  const { find } = await start();
  await expect(find(reference)).rejects.toThrow(`"${reference}" is not a Pod: give POD or pod/POD`);
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

test('the lives of a static Pod, which have the same UID, are separate', async () => {
  const backend = await webAndGone();
  const client = clientOf(backend);
  const uid = '0a1b2c3d4e5f';
  const put = (part: number, created: string, exitCode: number): Promise<unknown> =>
    backend.set<PodRecord>(POD_RECORDS, {
      apiVersion: 'lifepod.io/v1',
      kind: 'PodRecord',
      metadata: { name: `${uid}.${part}`, namespace: 'a' },
      podName: 'static-n',
      podUID: uid,
      transitions: [
        { key: 'Created', type: 'Created', at: created },
        { key: 'Exited/app/0', type: 'Exited', at: created, container: 'app', exitCode },
      ],
    });
  await put(0, '2026-01-31T12:00:00.000000Z', 1);
  await put(1, '2026-01-31T13:00:00.000000Z', 2);
  const codes = (records: readonly PodRecord[]) => transitionsOf(records).flatMap(({ exitCode }) => exitCode ?? []);
  const find = async () => {
    const life = await findLife(client, 'a', 'static-n', hintsFor({}, {}));
    return [codes(life.records), ...(await livesOf(client, life)).map(({ records }) => codes(records))];
  };
  expect(await find()).toEqual([[2], [1], [2]]);
  await backend.set<Pod>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'static-n', namespace: 'a', annotations: { 'kubernetes.io/config.mirror': uid } },
    spec: { containers: [{ name: 'app', image: 'i' }], nodeName: 'n' },
  });
  expect(await find()).toEqual([[2], [1], [2]]);
});
