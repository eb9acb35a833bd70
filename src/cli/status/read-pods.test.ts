import { expect, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { CoreV1Event, Job, Pod, PodRecord, Secret } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { EVENTS, JOBS, NAMESPACES, PODS, SECRETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { forbidden } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { UserError } from '../../platform/files.ts';
import { hintsFor } from '../hints.ts';
import { readPods } from './read-pods.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const AN_HOUR_AGO = formatTime(NOW - 3_600_000);

const podOf = (name: string, namespace: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace },
  spec: { nodeName: 'node', containers: [{ name: 'app', image: 'i' }] },
});
const conditions = (ready: 'True' | 'False') => [{ type: 'Ready', status: ready, lastTransitionTime: AN_HOUR_AGO }];
const waitingFor = (reason: string) => ({
  name: 'app',
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 0,
  state: { waiting: { reason } },
});

async function start() {
  const backend = await registryBackend({ namespaces: ['a', 'b', 'empty'] });
  const put = async (name: string, namespace: string, status: object): Promise<void> => {
    await backend.set<Pod>(PODS, podOf(name, namespace));
    await backend.setStatus(PODS, namespace, name, status);
  };
  await put('well', 'a', { phase: 'Running', conditions: conditions('True') });
  const imageless = {
    phase: 'Pending',
    conditions: conditions('False'),
    containerStatuses: [waitingFor('ErrImagePull')],
  };
  await put('imageless', 'a', imageless);
  await put('imageless', 'b', imageless);
  await put('unmounted', 'a', {
    phase: 'Pending',
    conditions: conditions('False'),
    containerStatuses: [waitingFor('ContainerCreating')],
  });
  const { metadata } = await clientOf(backend).resource<Pod>(PODS).get('unmounted', 'a');
  await backend.set<CoreV1Event>(EVENTS, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'unmounted.1', namespace: 'a' },
    involvedObject: { kind: 'Pod', namespace: 'a', name: 'unmounted', uid: metadata.uid },
    type: 'Warning',
    reason: 'FailedMount',
    message: 'configmap "x" not found',
    firstTimestamp: AN_HOUR_AGO,
    lastTimestamp: AN_HOUR_AGO,
  });
  const client = clientOf(backend);
  const read = (namespace?: string, clock = { now: () => NOW }) =>
    readPods({ client, namespace, ownNamespace: 'a', nodes: undefined, hints: hintsFor({}, {}), clock });
  return { backend, read };
}

const names = ({ unwell }: Awaited<ReturnType<typeof readPods>>): string[] =>
  unwell.map(({ pod, reason }) => `${pod.metadata.namespace}/${pod.metadata.name} ${reason}`);

test('readPods() finds the Pods of all namespaces that are not well', async () => {
  const { read } = await start();
  const reading = await read();
  expect(reading.pods).toHaveLength(4);
  expect(names(reading)).toEqual(['a/imageless ErrImagePull', 'a/unmounted FailedMount', 'b/imageless ErrImagePull']);
  expect(reading.unwell.map(({ since }) => since)).toEqual([NOW - 3_600_000, NOW - 3_600_000, NOW - 3_600_000]);
  expect(reading.unread).toEqual([]);
});

test('readPods() reads one namespace if it is given', async () => {
  const { read } = await start();
  expect(names(await read('b'))).toEqual(['b/imageless ErrImagePull']);
});

test('readPods() distinguishes a namespace without Pods from one that does not exist', async () => {
  const { backend, read } = await start();
  expect((await read('empty')).pods).toEqual([]);
  await expect(read('nope')).rejects.toThrow(/^the namespace nope does not exist: 'kubectl get namespaces/);
  backend.failNext('get namespaces', forbidden(NAMESPACES, 'nope', 'no'));
  expect((await read('nope')).pods).toEqual([]);
});

test('failed Pods are not reported if their Job is complete or a later Job of the CronJob has finished', async () => {
  const { backend, read } = await start();
  const jobOf = (name: string): Job => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'b', uid: name },
    spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'app', image: 'i' }] } } },
  });
  const cronJob = { apiVersion: 'batch/v1', kind: 'CronJob', name: 'nightly', uid: 'nightly', controller: true };
  for (const name of ['done', 'going', 'earlier', 'last']) {
    const { metadata: own, ...job } = jobOf(name);
    const isOfCronJob = ['earlier', 'last'].includes(name);
    await backend.set<Job>(JOBS, { ...job, metadata: { ...own, ...(isOfCronJob && { ownerReferences: [cronJob] }) } });
    const { metadata } = await clientOf(backend).resource<Job>(JOBS).get(name, 'b');
    const pod = podOf(`of-${name}`, 'b');
    pod.metadata.ownerReferences = [
      { apiVersion: 'batch/v1', kind: 'Job', name, uid: metadata.uid ?? '', controller: true },
    ];
    await backend.set<Pod>(PODS, pod);
    await backend.setStatus(PODS, 'b', pod.metadata.name, { phase: 'Failed', conditions: conditions('False') });
  }
  await backend.setStatus(JOBS, 'b', 'done', {
    succeeded: 1,
    startTime: AN_HOUR_AGO,
    completionTime: AN_HOUR_AGO,
    conditions: ['SuccessCriteriaMet', 'Complete'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: AN_HOUR_AGO,
    })),
  });
  for (const [name, lastTransitionTime] of [
    ['earlier', AN_HOUR_AGO],
    ['last', new Date(Date.parse(AN_HOUR_AGO) + 60_000).toISOString()],
  ] as const)
    await backend.setStatus(JOBS, 'b', name, {
      startTime: AN_HOUR_AGO,
      conditions: ['FailureTarget', 'Failed'].map((type) => ({ type, status: 'True', lastTransitionTime })),
    });
  expect(names(await read('b'))).toEqual(['b/imageless ErrImagePull', 'b/of-going Failed', 'b/of-last Failed']);
  backend.failNext('list jobs', forbidden(JOBS, '', 'no'));
  const reading = await read('b');
  expect(names(reading)).toHaveLength(5);
  expect(reading.unread).toEqual([
    expect.stringMatching(/^Jobs: jobs\S* is forbidden: no: failed Pods of complete Jobs/),
  ]);
});

/** The Events and the record of a static Pod have its UID, and not that of its mirror. */
test.each([
  ['a ready Pod', undefined],
  ['a mirror Pod', '0a1b2c3d4e5f'],
])('readPods() finds %s whose container is being stopped because a probe failed', async (_, staticUid) => {
  const { backend, read } = await start();
  const pod = podOf('stopping', 'b');
  if (staticUid !== undefined) pod.metadata.annotations = { [MIRROR_ANNOTATION]: staticUid };
  Object.assign(pod.spec?.containers[0] ?? {}, { livenessProbe: { exec: { command: ['check'] } } });
  await backend.set<Pod>(PODS, pod);
  const running = { ...waitingFor(''), ready: true, state: { running: { startedAt: AN_HOUR_AGO } } };
  const status = { phase: 'Running', conditions: conditions('True'), containerStatuses: [running] };
  await backend.setStatus(PODS, 'b', 'stopping', status);
  const { metadata } = await clientOf(backend).resource<Pod>(PODS).get('stopping', 'b');
  const uid = staticUid ?? metadata.uid ?? '';
  const time = formatTime(NOW - 5000);
  const step = { at: time, container: 'app', attempt: 0 };
  await backend.set<PodRecord>(POD_RECORDS, {
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: recordName(uid, 0), namespace: 'b' },
    podName: 'stopping',
    podUID: uid,
    transitions: [{ ...step, key: 'x', type: 'ProbeFailing', reason: 'liveness', message: 'it is stuck' }],
  });
  const failed = (probe: string): CoreV1Event => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `stopping.${probe.toLowerCase()}`, namespace: 'b' },
    involvedObject: { kind: 'Pod', namespace: 'b', name: 'stopping', uid, fieldPath: 'spec.containers{app}' },
    type: 'Warning',
    reason: 'Unhealthy',
    message: `${probe} probe failed: it is stuck`,
    lastTimestamp: time,
  });
  await backend.set<CoreV1Event>(EVENTS, failed('Startup'));
  // A Pod that is ready has passed its startup probes, so its record is not read.
  expect(names(await read('b'))).toEqual(['b/imageless ErrImagePull']);
  await backend.set<CoreV1Event>(EVENTS, failed('Liveness'));
  const reading = await read('b');
  expect(names(reading)).toEqual(['b/imageless ErrImagePull', 'b/stopping Unhealthy']);
  expect(reading.unwell[1]?.sentence).toBe(
    'stopping is stopping container app: the liveness probe of container app failed, it is stuck.',
  );
});

test('readPods() finds a ready Pod whose defer container needs a Secret that does not exist, or that the user may not read', async () => {
  const { backend, read } = await start();
  const pod = podOf('leaving', 'empty');
  const envFrom = [{ secretRef: { name: 'login' } }];
  Object.assign(pod.spec ?? {}, { deferContainers: [{ name: 'bye', image: 'i', envFrom }] });
  await backend.set<Pod>(PODS, pod);
  const running = { ...waitingFor(''), ready: true, state: { running: { startedAt: AN_HOUR_AGO } } };
  const status = { phase: 'Running', conditions: conditions('True'), containerStatuses: [running] };
  await backend.setStatus(PODS, 'empty', 'leaving', status);
  const { unwell } = await read('empty');
  expect(unwell.map(({ reason }) => reason)).toEqual(['CreateContainerConfigError']);
  expect(unwell[0]?.sentence).toBe(
    'leaving runs, but its defer container bye needs the Secret login, which does not exist in namespace empty.',
  );
  backend.failNext('get secrets', forbidden(SECRETS, 'login', 'no'));
  const reading = await read('empty');
  expect(names(reading)).toEqual([]);
  expect(reading.unread).toEqual([expect.stringMatching(/^Secrets: this user may not read some /)]);
  await backend.set<Secret>(SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'login', namespace: 'empty' },
  });
  expect(await read('empty')).toMatchObject({ unwell: [], unread: [] });
});

test('a user who may read one namespace gets its Pods, and a sentence about the others', async () => {
  const { backend, read } = await start();
  backend.failNext('list pods /', forbidden(PODS, '', 'no'));
  const reading = await read();
  expect(names(reading)).toEqual(['a/imageless ErrImagePull', 'a/unmounted FailedMount']);
  expect(reading.unread).toEqual([expect.stringMatching(/^Pods of other namespaces than a: pods is forbidden: no$/)]);
});

test('without the right to read Events or records, each is named once', async () => {
  const { backend, read } = await start();
  backend.failNext('list events', forbidden(EVENTS, '', 'no'));
  for (let call = 0; call < 3; call++) backend.failNext('get podrecords', forbidden(POD_RECORDS, 'x', 'no'));
  const reading = await read();
  expect(names(reading)).toEqual(['a/imageless ErrImagePull', 'b/imageless ErrImagePull']);
  expect(reading.unread).toEqual([
    expect.stringMatching(/^Events: events is forbidden: no: /),
    expect.stringMatching(/^PodRecords: this user may not read them/),
  ]);
});

test.each<[string | undefined, string, string[]]>([
  [undefined, 'a', ['list pods /', 'list pods a/']],
  ['b', 'b', ['list pods b/']],
])('a user who may not read the Pods of the namespace %s gets a sentence about %s', async (given, named, refused) => {
  const { backend, read } = await start();
  for (const begin of refused) backend.failNext(begin, forbidden(PODS, '', 'no'));
  await expect(read(given)).rejects.toThrow(
    new UserError(
      `this user may not read Pods in namespace ${named}: give another namespace with -n, or ask an administrator for the role view in this one`,
    ),
  );
});

test('readPods() explains a Pod as of the time at which its record was read, because slow answers contain later steps', async () => {
  const { backend, read } = await start();
  await backend.set<Pod>(PODS, podOf('deaf', 'empty'));
  const running = { ...waitingFor(''), state: { running: { startedAt: AN_HOUR_AGO } } };
  await backend.setStatus(PODS, 'empty', 'deaf', {
    phase: 'Running',
    conditions: conditions('False'),
    containerStatuses: [running],
  });
  const { metadata } = await clientOf(backend).resource<Pod>(PODS).get('deaf', 'empty');
  const uid = metadata.uid ?? '';
  const [at, deadline] = [formatTime(NOW), formatTime(NOW + 10_000)];
  const app = { container: 'app', containerKind: 'app', attempt: 0 } as const;
  await backend.set<PodRecord>(POD_RECORDS, {
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: recordName(uid, 0), namespace: 'empty' },
    podName: 'deaf',
    podUID: uid,
    transitions: [
      { key: 'x', at, type: 'TerminationBegan', reason: 'DeadlineExceeded', deadline },
      { key: 'y', at, type: 'StopSignal', ...app, deadline },
    ],
  });
  const times = [NOW, NOW + 30_000];
  const { unwell } = await read('empty', { now: () => times.shift() ?? NaN });
  expect(unwell.map(({ reason }) => reason)).toEqual(['PastDeadline']);
  expect(unwell[0]?.sentence).toContain(
    'still runs 30.0s after its stop signal; it will be killed at 12:00:10 UTC (overdue for 20.0s)',
  );
});
