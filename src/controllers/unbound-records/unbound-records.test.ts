import { expect, test } from 'vitest';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import { memoryBackend, silentLog, testTimers } from '../../client/testing.ts';
import { inProcessClient } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { startUnboundRecords } from './unbound-records.ts';

test('writes a record for a Pod that is deleted before it has a node, and for no other', async () => {
  const backend = memoryBackend();
  const timers = testTimers(Date.UTC(2026, 0, 31, 0, 1));
  const { signal } = new AbortController();
  const pod = (name: string, more: Partial<Pod>): void => {
    const metadata = { name, namespace: 'a', uid: `uid-${name}`, creationTimestamp: '2026-01-31T00:00:00Z' };
    backend.set(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, ...more } as Pod);
  };
  const conditions = [
    {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message: 'no room',
      lastTransitionTime: '2026-01-31T00:00:01Z',
    },
  ];
  pod('waiting', { status: { conditions } });
  pod('bound', { spec: { nodeName: 'n', containers: [] } });
  pod('new', {});
  backend.failNext('create podrecords', serviceUnavailable('not now'));
  await startUnboundRecords({ client: inProcessClient(backend), timers, log: silentLog, signal });
  while (!backend.calls.includes('watch pods /')) await new Promise(setImmediate);
  for (const name of ['waiting', 'bound', 'new']) backend.remove(PODS, 'a', name);
  const records = (): PodRecord[] => backend.objects(POD_RECORDS) as PodRecord[];
  while (records().length < 2) {
    await new Promise(setImmediate);
    timers.advance(1000);
  }

  const gone = { key: 'Gone', at: '2026-01-31T00:01:00.000000Z', type: 'Gone' };
  const created = { key: 'Created', at: '2026-01-31T00:00:00.000000Z', type: 'Created' };
  expect(Object.fromEntries(records().map(({ metadata, transitions }) => [metadata.name, transitions]))).toEqual({
    'uid-new.0': [created, gone],
    'uid-waiting.0': [
      created,
      {
        key: 'NotScheduled',
        at: '2026-01-31T00:00:01.000000Z',
        type: 'NotScheduled',
        reason: 'Unschedulable',
        message: 'no room',
      },
      gone,
    ],
  });
  expect(records()[0]).toMatchObject({ podName: 'new', podUID: 'uid-new', metadata: { namespace: 'a' } });
});
