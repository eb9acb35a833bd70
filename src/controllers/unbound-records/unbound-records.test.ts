import { expect, test } from 'vitest';
import type { Pod, PodRecord, PodStatus } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { alreadyExists, serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startUnboundRecords } from './unbound-records.ts';

test('a record is written for a Pod that is deleted before it has a node, and for no other Pod', async () => {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const { signal } = new AbortController();
  const create = (name: string, nodeName?: string, status?: PodStatus): Promise<Pod> => {
    const spec = { nodeName, containers: [{ name: 'app', image: 'x' }] };
    return backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a' }, spec, status });
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
  await create('waiting', undefined, { conditions });
  await create('bound', 'n');
  const created = await create('new');
  timers.advance(60_000);
  backend.failNext('create podrecords', serviceUnavailable('not now'));
  await startUnboundRecords(withInformers({ client: clientOf(backend), timers, log: silentLog, signal }));
  while (!backend.calls.includes('watch pods /')) await new Promise(setImmediate);
  for (const name of ['waiting', 'bound', 'new']) await backend.remove(PODS, 'a', name);
  const records = (): PodRecord[] => backend.objects(POD_RECORDS) as PodRecord[];
  while (records().length < 2) {
    await new Promise(setImmediate);
    timers.advance(1000);
  }

  const gone = { key: 'Gone', at: '2026-01-31T00:01:00.000000Z', type: 'Gone' };
  const first = { key: 'Created', at: '2026-01-31T00:00:00.000000Z', type: 'Created' };
  expect(Object.fromEntries(records().map(({ podName, transitions }) => [podName, transitions]))).toEqual({
    new: [first, gone],
    waiting: [
      first,
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
  const { uid } = created.metadata;
  expect(records().find(({ podName }) => podName === 'new')).toMatchObject({
    metadata: { name: `${uid}.0`, namespace: 'a' },
    podUID: uid,
  });
});

test('a record that exists is not written again; only a condition PodScheduled with the status False is a step', async () => {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const { signal } = new AbortController();
  const spec = { containers: [{ name: 'app', image: 'x' }] };
  const conditions = [
    { type: 'Ready', status: 'False' },
    { type: 'PodScheduled', status: 'True' },
  ];
  const create = (name: string, status: PodStatus): Promise<Pod> =>
    backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a' }, spec, status });
  await create('other', { conditions });
  await create('bare', { conditions: [{ type: 'PodScheduled', status: 'False' }] });
  await create('known', {});
  await startUnboundRecords(withInformers({ client: clientOf(backend), timers, log: silentLog, signal }));
  while (!backend.calls.includes('watch pods /')) await new Promise(setImmediate);
  const creations = () => backend.calls.filter((call) => call.startsWith('create podrecords')).length;
  const settled = async (): Promise<void> => {
    timers.advance(60_000);
    for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  };
  backend.failNext('create podrecords', alreadyExists(POD_RECORDS, 'known'));
  await backend.remove(PODS, 'a', 'known');
  await settled();
  await settled();
  expect([creations(), backend.objects(POD_RECORDS)]).toEqual([1, []]);
  for (const name of ['other', 'bare']) await backend.remove(PODS, 'a', name);
  await settled();
  const steps = (backend.objects(POD_RECORDS) as PodRecord[]).map(({ podName, transitions }) => [
    podName,
    ...transitions.slice(1).map(({ type, at, reason, message }) => [type, at.slice(11, 19), reason, message]),
  ]);
  expect(Object.fromEntries(steps.map(([name, ...rest]) => [name, rest]))).toEqual({
    other: [['Gone', '00:02:00', undefined, undefined]],
    bare: [
      ['NotScheduled', '00:02:00', undefined, undefined],
      ['Gone', '00:02:00', undefined, undefined],
    ],
  });
});
