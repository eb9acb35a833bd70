import { expect, test } from 'vitest';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { formatMicroTime } from '../../machinery/time.ts';
import { hintsFor } from '../hints.ts';
import { createInterrupts } from './interrupts.ts';
import { createSlowReports, givenUp } from './notices.ts';

const COMMAND = 'pod/p cannot start: no image; make it: sudo bin/lifepod image make busybox:1.28';
const START = 'sudo bin/lifepod up --detach';

test.each([
  [COMMAND, START, `${COMMAND}; if the engine has stopped with this session, first start one: ${START}`],
  [COMMAND, undefined, COMMAND],
  ['pod/p cannot start: fix its command', START, 'pod/p cannot start: fix its command'],
])('a session that gives up says how to start the engine that its advice needs: %s, %s', (because, start, sentence) => {
  expect(givenUp(because, start)).toBe(sentence);
});

test('an interrupted session says why a Pod has not ended yet, until a second interruption ends the Pod', async () => {
  const backend = await registryBackend();
  const at = formatMicroTime(Date.now() - 5000);
  await backend.set<PodRecord>(POD_RECORDS, {
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: recordName('u', 0), namespace: 'a' },
    podName: 'p',
    podUID: 'u',
    transitions: [
      { key: 'Created', type: 'Created', at },
      { key: 'StopSignal/app/0', type: 'StopSignal', at, container: 'app', containerKind: 'app' },
    ],
  });
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a', uid: 'u', deletionTimestamp: at, deletionGracePeriodSeconds: 30 },
    spec: { containers: [{ name: 'app', image: 'i', command: ['sleep'] }] },
    status: {
      containerStatuses: [
        { name: 'app', image: 'i', imageID: 'i', ready: true, restartCount: 0, state: { running: { startedAt: at } } },
      ],
    },
  };
  const said: string[] = [];
  const interrupts = createInterrupts(() => undefined);
  const report = createSlowReports(
    { client: clientOf(backend), hints: hintsFor({}, {}), say: (line) => void said.push(line) },
    interrupts,
  );
  await report(pod);
  expect(said).toEqual([]);
  interrupts.interrupt(130);
  await report(pod);
  const kept = { ...pod.metadata, deletionGracePeriodSeconds: 0, finalizers: ['a.example/b'] };
  await report({ ...pod, metadata: kept, status: {} });
  interrupts.interrupt(130);
  await report(pod);
  expect(said).toEqual([
    expect.stringMatching(
      /^pod\/p is not gone yet: PID 1 of container app has ignored its stop signal for .*; Ctrl\+C again ends it at once$/,
    ),
  ]);
});
