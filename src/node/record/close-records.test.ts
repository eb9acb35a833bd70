import { expect, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { closeRecords } from './close-records.ts';
import { createPodRecorder } from './recorder.ts';

test('closeRecords() reports Pods that no longer exist and whose records lack the last steps', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const { signal } = new AbortController();
  const options = { client, timers: createVirtualTimers(), log: silentLog, signal };
  /** The UIDs of Pods by name. The records of other names have the name as the UID. */
  const uids = new Map<string, string>();
  const put = async (name: string, part: number, ...types: string[]): Promise<void> => {
    const uid = uids.get(name) ?? name;
    const at = '2026-01-31T00:00:00.000000Z';
    const record: PodRecord = {
      apiVersion: 'lifepod.io/v1',
      kind: 'PodRecord',
      metadata: { name: recordName(uid, part), namespace: 'a' },
      podName: name,
      podUID: uid,
      transitions: types.map((type) => ({ key: type, at, type })),
    };
    await backend.set(POD_RECORDS, record);
  };
  const createPod = async (name: string, annotations = {}): Promise<string> => {
    const metadata = { name, namespace: 'a', annotations };
    const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] };
    return (await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec })).metadata.uid ?? '';
  };
  await put('cut-off', 0, 'Created');
  await put('cut-off', 1, 'Exited', 'Removed');
  await put('cut-short', 0, 'Exited');
  await put('again', 0, 'Created', 'Removed');
  await createPod('again');
  uids.set('here', await createPod('here'));
  await put('here', 0, 'Created');
  await put('file', 0, 'Created');
  await createPod('file', { [MIRROR_ANNOTATION]: 'file' });
  await put('left', 0, 'Created');
  await put('forced', 0, 'Created', 'Scheduled', 'Gone');
  await put('unbound', 0, 'Created', 'Gone');
  await put('whole', 0, 'Created', 'Scheduled', 'Gone');
  await put('whole', 1, 'Removed');

  const recorder = createPodRecorder(options);
  await closeRecords({ ...options, isKnown: (uid) => uid === 'left', gone: recorder.gone });
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
      'here.0: Created',
      'file.0: Created',
      'left.0: Created',
      'forced.0: Created Scheduled Gone Removed',
      'unbound.0: Created Gone',
      'whole.0: Created Scheduled Gone',
      'whole.1: Removed',
    ]),
  );
});
