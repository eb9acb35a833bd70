import { expect, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { closeRecords, isAmong } from './close-records.ts';
import { createPodRecorder } from './recorder.ts';

test('closeRecords() reports the Pods of its node that no longer exist and whose records lack the last steps', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const { signal } = new AbortController();
  const options = { client, nodeName: 'n', timers: createVirtualTimers(), log: silentLog, signal };
  let nodeName: string | undefined = 'n';
  let at = '2026-01-31T00:00:00.000000Z';
  const put = async (name: string, part: number, ...types: string[]): Promise<void> => {
    const uid = name;
    const record: PodRecord = {
      apiVersion: 'lifepod.io/v1',
      kind: 'PodRecord',
      metadata: { name: recordName(uid, part), namespace: 'a' },
      podName: name,
      podUID: uid,
      ...(nodeName === undefined ? {} : { nodeName }),
      transitions: types.map((type) => ({ key: type, at, type })),
    };
    await backend.set(POD_RECORDS, record);
  };
  await put('cut-off', 0, 'Created');
  await put('cut-off', 1, 'Exited', 'Removed');
  await put('cut-short', 0, 'Exited');
  await put('again', 0, 'Created', 'Removed');
  await put('left', 0, 'Created');
  await put('forced', 0, 'Created', 'Scheduled', 'Gone');
  await put('unbound', 0, 'Created', 'Gone');
  await put('whole', 0, 'Created', 'Scheduled', 'Gone');
  await put('whole', 1, 'Removed');
  await put('static', 0, 'Created', 'Removed', 'Gone');
  at = '2026-01-31T01:00:00.000000Z';
  await put('static', 1, 'Created', 'Exited');
  nodeName = 'other';
  await put('elsewhere', 0, 'Created');
  nodeName = undefined;
  await put('nowhere', 0, 'Created');

  const recorder = createPodRecorder(options);
  await closeRecords({ ...options, isKnown: ({ metadata }) => metadata.uid === 'left', gone: recorder.gone });
  await recorder.flushed();
  const recorded = (backend.objects(POD_RECORDS) as PodRecord[]).map(
    ({ metadata, podName, podUID, transitions }) =>
      `${podName}${metadata.name.slice(podUID.length)}: ${transitions.map(({ type }) => type).join(' ')}`,
  );
  expect(new Set(recorded)).toEqual(
    new Set([
      'cut-off.0: Created',
      'cut-off.1: Exited Removed Gone',
      'cut-short.0: Exited Removed Gone',
      'again.0: Created Removed Gone',
      'elsewhere.0: Created',
      'nowhere.0: Created',
      'left.0: Created',
      'forced.0: Created Scheduled Gone Removed',
      'unbound.0: Created Gone',
      'whole.0: Created Scheduled Gone',
      'whole.1: Removed',
      'static.0: Created Removed Gone',
      'static.1: Created Exited Removed Gone',
    ]),
  );
});

test.each<[string, Pod | undefined, boolean]>([
  ['a Pod with the name and the UID', podOf('u'), true],
  ['a Pod with the name and another UID', podOf('other'), false],
  ['the mirror Pod of the static Pod', podOf('other', { [MIRROR_ANNOTATION]: 'u' }), true],
  ['no Pod with the name', undefined, false],
])('a Pod of a record exists if the API has %s', (_, found, expected) => {
  const get = (namespace: string | undefined, name: string) => (`${namespace}/${name}` === 'a/web' ? found : undefined);
  expect(isAmong({ get }, podOf('u'))).toBe(expected);
});

function podOf(uid: string, annotations = {}): Pod {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'a', uid, annotations } };
}
