import { expect, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { memoryBackend, silentLog, testTimers } from '../../client/testing.ts';
import { inProcessClient } from '../../client/typed-client.ts';
import { closeRecords } from './close-records.ts';
import { createPodRecorder } from './recorder.ts';

const PODS = { group: '', version: 'v1', resource: 'pods' };

test('reports Pods that no longer exist and whose records lack the last steps', async () => {
  const backend = memoryBackend();
  const client = inProcessClient(backend);
  const { signal } = new AbortController();
  const options = { client, timers: testTimers(), log: silentLog, signal };
  const put = (uid: string, part: number, ...types: string[]): void => {
    const at = '2026-01-31T00:00:00.000000Z';
    const record: PodRecord = {
      apiVersion: 'lifepod.io/v1',
      kind: 'PodRecord',
      metadata: { name: recordName(uid, part), namespace: 'a' },
      podName: `pod-${uid}`,
      podUID: uid,
      transitions: types.map((type) => ({ key: type, at, type })),
    };
    backend.set(POD_RECORDS, record);
  };
  const pod = (name: string, uid: string, annotations = {}): void =>
    void backend.set(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a', uid, annotations } });
  put('cut-off', 0, 'Created');
  put('cut-off', 1, 'Exited', 'Removed');
  put('cut-short', 0, 'Exited');
  put('again', 0, 'Created', 'Removed');
  pod('pod-again', 'another');
  put('here', 0, 'Created');
  pod('pod-here', 'here');
  put('file', 0, 'Created');
  pod('pod-file', 'mirror', { [MIRROR_ANNOTATION]: 'file' });
  put('left', 0, 'Created');
  put('forced', 0, 'Created', 'Scheduled', 'Gone');
  put('unbound', 0, 'Created', 'Gone');
  put('whole', 0, 'Created', 'Scheduled', 'Gone');
  put('whole', 1, 'Removed');

  const recorder = createPodRecorder(options);
  await closeRecords({ ...options, isKnown: (uid) => uid === 'left', gone: recorder.gone });
  await recorder.flushed();
  const recorded = (backend.objects(POD_RECORDS) as PodRecord[]).map(
    ({ metadata, transitions }) => `${metadata.name}: ${transitions.map(({ type }) => type).join(' ')}`,
  );
  expect(recorded).toEqual([
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
  ]);
});
