import { expect, test, vi } from 'vitest';
import type { CoreV1Event, DaemonSet, Deployment, Job, Pod, PodRecord, ReplicaSet } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, EVENTS, JOBS, PODS, REPLICA_SETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { type KubeObject, type OwnerReference, uidOf } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { hintsFor } from '../hints.ts';
import type { FindKind } from './discovery.ts';
import { SESSION_LABEL } from './plan.ts';
import { type Failure, OBSTACLE_MILLIS } from './session-state.ts';
import { watchSession } from './watch-session.ts';

const RESOURCES = { Deployment: DEPLOYMENTS, ReplicaSet: REPLICA_SETS, Job: JOBS };
const findKind: FindKind = (_, kind) =>
  Promise.resolve({ ...RESOURCES[kind as keyof typeof RESOURCES], kind, namespaced: true });
const spec = { containers: [{ name: 'app', image: 'x' }] };
const labels = { [SESSION_LABEL]: 's1' };
const podOf = (name: string, metadata: object): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a', ...metadata },
  spec,
});
const ownerOf = (owner: KubeObject): { ownerReferences: OwnerReference[] } => ({
  ownerReferences: [
    { apiVersion: 'apps/v1', kind: owner.kind, name: owner.metadata.name, uid: uidOf(owner), controller: true },
  ],
});

async function watch() {
  const backend = await registryBackend();
  const timers = createVirtualTimers();
  const [followed, said, stop] = [[] as string[], [] as string[], new AbortController()];
  const failures: Failure[] = [];
  const watched = await watchSession({
    id: 's1',
    client: clientOf(backend),
    findKind,
    namespaces: ['a'],
    kinds: new Set(['Job', 'DaemonSet']),
    logs: {
      follow: ({ metadata }) => {
        if (!followed.includes(metadata.name)) followed.push(metadata.name);
        return Promise.resolve();
      },
    },
    platform: { timers, log: silentLog },
    say: (line) => said.push(line),
    hints: hintsFor({ dataDir: '/d' }, {}),
    failed: (failure) => failures.push(failure),
    changed: () => undefined,
    signal: stop.signal,
  });
  const setStatus = async (name: string, status: object): Promise<void> => {
    await backend.setStatus(PODS, 'a', name, status);
    await watched.settled();
  };
  const recordProbe = async (pod: Pod, attempt: number, output: string): Promise<void> => {
    const of = { at: '2026-01-01T00:00:00.000000Z', container: 'app', containerKind: 'app', attempt };
    const record: PodRecord = {
      apiVersion: 'lifepod.io/v1',
      kind: 'PodRecord',
      metadata: { name: recordName(uidOf(pod), attempt), namespace: 'a' },
      podName: pod.metadata.name,
      podUID: uidOf(pod),
      nodeName: 'n',
      transitions: [
        { ...of, key: `p${attempt}`, type: 'ProbeFailing', reason: 'liveness', message: output },
        { ...of, key: `s${attempt}`, type: 'StopSignal', message: 'Container app failed liveness probe' },
      ],
    };
    await backend.set<PodRecord>(POD_RECORDS, record);
  };
  return { backend, watched, followed, said, failures, stop, timers, setStatus, recordProbe };
}

test('the Pods of a session are those with its label and those that its objects have created', async () => {
  const { backend, watched, followed } = await watch();
  const template = { metadata: { name: '', labels: { app: 'web' } }, spec };
  const selector = { matchLabels: { app: 'web' } };
  const replicaSet = (name: string, metadata: object): ReplicaSet => ({
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name, namespace: 'a', ...metadata },
    spec: { selector, template },
  });
  const deployment = await backend.set<Deployment>(DEPLOYMENTS, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'a', labels },
    spec: { selector, template },
  });
  const own = await backend.set(REPLICA_SETS, replicaSet('own', ownerOf(deployment)));
  const other = await backend.set(REPLICA_SETS, replicaSet('other', {}));
  await backend.set(PODS, podOf('labeled', { labels }));
  await backend.set(PODS, podOf('created', ownerOf(own)));
  await backend.set(PODS, podOf('of-other', ownerOf(other)));
  await backend.set(PODS, podOf('of-another-session', { labels: { [SESSION_LABEL]: 's2' } }));
  await backend.set(
    PODS,
    podOf('of-a-former-owner', ownerOf({ ...own, metadata: { ...own.metadata, uid: 'former' } })),
  );
  await watched.settled();
  expect(followed.sort()).toEqual(['created', 'labeled']);
  await backend.remove(PODS, 'a', 'labeled');
  await vi.waitFor(() => expect(watched.pods().map(({ metadata }) => metadata.name)).toEqual(['created']));
});

test('a session is over when its Pods have ended, but not before all objects are created', async () => {
  const { backend, watched, setStatus } = await watch();
  watched.created(await backend.set(PODS, podOf('one', { labels })));
  await setStatus('one', { phase: 'Succeeded' });
  let isOver = false;
  void watched.over.then(() => {
    isOver = true;
  });
  watched.created(await backend.set(PODS, podOf('two', { labels })));
  await watched.settled();
  watched.complete();
  await setStatus('one', { phase: 'Succeeded', message: 'changed' });
  expect(isOver).toBe(false);
  await setStatus('two', { phase: 'Failed' });
  expect(await watched.over).toBeUndefined();
});

test('the last changes of Pods are known without a bookmark, although objects of other kinds have changed since', async () => {
  const { backend, watched } = await watch();
  const one = await backend.set(PODS, podOf('one', { labels }));
  await backend.setStatus(PODS, 'a', 'one', { phase: 'Failed' });
  await backend.set(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'later', namespace: 'a' } });
  await watched.settled();
  expect(watched.state().pods.get(uidOf(one))?.object.status?.phase).toBe('Failed');
});

test('a session whose Pod cannot start for two minutes is over, and reports each cause once, with what to do', async () => {
  const { backend, watched, said, timers, setStatus } = await watch();
  const one = { ...podOf('one', { labels }), spec: { containers: [{ name: 'app', image: 'busybox:5.1' }] } };
  watched.created(await backend.set(PODS, one));
  watched.complete();
  const waits = (reason: string, message: string) => ({
    phase: 'Pending',
    containerStatuses: [
      { name: 'app', image: '', imageID: '', ready: false, restartCount: 0, state: { waiting: { reason, message } } },
    ],
  });
  const pull = 'failed to do request: Head "https://r/v2": dial tcp: lookup r: no such host';
  for (const _ of [1, 2, 3]) {
    await setStatus('one', waits('ErrImagePull', pull));
    await setStatus('one', waits('ImagePullBackOff', `Back-off pulling image "busybox:5.1": ErrImagePull: ${pull}`));
  }
  const text =
    'container app: the image busybox:5.1 cannot be pulled (the name of its registry, r, cannot be resolved: is this machine offline?); ' +
    "make it from this machine's busybox: lifepod image make busybox:5.1 --data-dir /d; " +
    "load it from an archive, without a registry, such as 'docker save busybox:5.1 > FILE' writes on another machine: lifepod image load FILE --data-dir /d";
  expect(said).toEqual([`pod/one waits: ${text}; see 'lifepod why one -n a --data-dir /d' in another terminal`]);
  await setStatus('one', waits('CreateContainerConfigError', 'configmap "c" not found'));
  await setStatus('one', waits('ErrImagePull', pull));
  expect(said.slice(1)).toEqual([
    `pod/one waits: container app needs the ConfigMap c, which does not exist in namespace a; create the ConfigMap, and the node retries automatically: kubectl create configmap c -n a --from-literal=KEY=VALUE --kubeconfig /d/kubeconfig; see 'lifepod why one -n a --data-dir /d' in another terminal`,
  ]);
  timers.advance(OBSTACLE_MILLIS);
  expect(await watched.over).toBe(`pod/one cannot start for 120 s: ${text}`);
});

test('a session reports a container that cannot be created once, although each message names another ID and folder', async () => {
  const { backend, watched, said, setStatus } = await watch();
  watched.created(await backend.set(PODS, podOf('one', { labels })));
  watched.complete();
  for (const number of ['2809725728', '31415', '166']) {
    const message = `container "${number.padStart(64, 'a')}": cannot use /tmp/containerd-mount${number.padStart(9, '1')}`;
    await setStatus('one', status({ waiting: { reason: 'CreateContainerError', message } }));
  }
  expect(said).toHaveLength(1);
  expect(said[0]).toMatch(/^pod\/one waits: container app cannot be started, container ".*: cannot use .*2809725728; /);
});

const eventOf = ({ metadata }: Pod, reason: string, message: string, count: number, type = 'Warning') => {
  const { name, namespace = '', uid = '' } = metadata;
  const involvedObject = { kind: 'Pod', namespace, name, uid };
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: reason.toLowerCase(), namespace },
    involvedObject,
    type,
    reason,
    message,
    count,
  };
};

test('a session whose Pod gets no sandbox reports the cause once, and is over after two minutes', async () => {
  const { backend, watched, said, timers } = await watch();
  const one = await backend.set(PODS, podOf('one', { labels }));
  watched.created(one);
  watched.complete();
  const fail = (message: string, count: number): Promise<unknown> =>
    backend.set(EVENTS, eventOf(one, 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${message}`, count));
  await fail('no address is free for 1', 1);
  await vi.waitFor(() => expect(said).toHaveLength(1));
  await fail('no address is free for 2', 2);
  timers.advance(OBSTACLE_MILLIS);
  expect(await watched.over).toMatch(
    /^pod\/one cannot start for 120 s: its sandbox cannot be created: no address is free/,
  );
  expect(said).toEqual([
    "pod/one waits: its sandbox cannot be created: no address is free for 1; see 'lifepod why one -n a --data-dir /d' in another terminal",
  ]);
});

const status = (state: object, lastState?: object) => ({
  phase: 'Running',
  containerStatuses: [{ name: 'app', image: 'x', imageID: '', ready: false, restartCount: 0, state, lastState }],
});
const [CREATING, BACK_OFF] = ['ContainerCreating', 'CrashLoopBackOff'].map((reason) => ({ waiting: { reason } })) as [
  object,
  object,
];
const failedStart = (id: string) => ({
  terminated: { exitCode: 128, reason: 'StartError', message: `task ${id.repeat(64)}: exec: "bash": not found\n` },
});
const ended = (exitCode: number) => ({ terminated: { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' } });

test('a session says once that a Pod is not ready, after the time that its probe needs to fail', async () => {
  const { backend, watched, said } = await watch();
  const readinessProbe = { exec: { command: ['false'] }, periodSeconds: 2 };
  const containers = [{ name: 'app', image: 'x', readinessProbe }];
  const one = await backend.set(PODS, { ...podOf('one', { labels }), spec: { containers } });
  const startedAt = '2026-01-02T03:04:05Z';
  await backend.setStatus(PODS, 'a', 'one', status({ running: { startedAt } }));
  watched.created(one);
  watched.complete();
  await watched.settled();
  for (const [count, seconds] of [1, 5, 6, 8].entries()) {
    const event = eventOf(one, 'Unhealthy', 'Readiness probe failed: no database', count + 1);
    const lastTimestamp = new Date(Date.parse(startedAt) + seconds * 1000).toISOString();
    const involvedObject = { ...event.involvedObject, fieldPath: 'spec.containers{app}' };
    await backend.set(EVENTS, { ...event, involvedObject, lastTimestamp });
    if (seconds === 5) expect(said).toEqual([]);
  }
  await vi.waitFor(() => expect(said).toHaveLength(1));
  expect(said).toEqual([
    "pod/one is not ready: the readiness probe of container app fails, no database; see 'lifepod why one -n a --data-dir /d' in another terminal",
  ]);
});

test('a session whose sandboxes end at their start is over after two minutes, although each is ready for a moment', async () => {
  const { backend, watched, said, timers, setStatus } = await watch();
  const one = await backend.set(PODS, podOf('one', { labels }));
  watched.created(one);
  watched.complete();
  const ready = (value: string) => ({
    ...status({ terminated: { exitCode: 128, reason: 'StartError', message: `task ${timers.now()} not found` } }),
    conditions: [
      { type: 'PodReadyToStartContainers', status: value, lastTransitionTime: new Date(timers.now()).toISOString() },
    ],
  });
  for (let count = 1; count < 4; count++) {
    await backend.set(EVENTS, eventOf(one, 'SandboxChanged', 'Pod sandbox changed', count, 'Normal'));
    await vi.waitFor(() => expect(said).toHaveLength(1));
    await setStatus('one', ready('False'));
    timers.advance(OBSTACLE_MILLIS / 4);
    await setStatus('one', ready('True'));
  }
  await setStatus('one', ready('False'));
  timers.advance(OBSTACLE_MILLIS / 4);
  expect(await watched.over).toMatch(/^pod\/one cannot start for 120 s: its sandbox ends right after its start/);
  expect(said[0]).toMatch(/^pod\/one waits: its sandbox ends right after its start; make sure that the sandbox image /);
});

test('a session whose second sandbox remains continues, although nothing else of the Pod changes', async () => {
  const { backend, watched, said, timers, setStatus } = await watch();
  const one = await backend.set(PODS, podOf('one', { labels }));
  watched.created(one);
  watched.complete();
  await backend.set(EVENTS, eventOf(one, 'SandboxChanged', 'Pod sandbox changed', 1, 'Normal'));
  await vi.waitFor(() => expect(said).toHaveLength(1));
  const lastTransitionTime = new Date(timers.now()).toISOString();
  await setStatus('one', {
    ...status(CREATING),
    conditions: [{ type: 'PodReadyToStartContainers', status: 'True', lastTransitionTime }],
  });
  timers.advance(2 * OBSTACLE_MILLIS);
  await new Promise(setImmediate);
  expect(await Promise.race([watched.over, Promise.resolve('continues')])).toBe('continues');
});

test('a session whose container never gets its first process is over after two minutes, and reports it once', async () => {
  const { backend, watched, said, timers, setStatus } = await watch();
  watched.created(await backend.set(PODS, podOf('one', { labels })));
  watched.complete();
  const cause = 'container app: its process cannot be started: task ID: exec: "bash": not found';
  const message = `rpc error: code = Unknown desc = ${failedStart('c').terminated.message}`;
  await setStatus('one', status({ waiting: { reason: 'RunContainerError', message } }));
  await setStatus('one', status(failedStart('a')));
  timers.advance(OBSTACLE_MILLIS / 2);
  await setStatus('one', status(BACK_OFF, failedStart('a')));
  await setStatus('one', status(CREATING, failedStart('a')));
  await setStatus('one', status(failedStart('b'), failedStart('a')));
  timers.advance(OBSTACLE_MILLIS / 2);
  expect(await watched.over).toBe(`pod/one cannot start for 120 s: ${cause}`);
  expect(said).toEqual([`pod/one waits: ${cause}; see 'lifepod why one -n a --data-dir /d' in another terminal`]);
});

test('a session whose container runs and fails again and again continues, and reports each cause once', async () => {
  const { backend, watched, said, timers, setStatus } = await watch();
  watched.created(await backend.set(PODS, podOf('one', { labels })));
  watched.complete();
  let isOver = false;
  void watched.over.then(() => {
    isOver = true;
  });
  for (const end of [ended(4), ended(4), ended(0), failedStart('a'), ended(4)]) {
    await setStatus('one', status(end));
    await setStatus('one', status(BACK_OFF, end));
    timers.advance(OBSTACLE_MILLIS);
  }
  const hookFailed = { waiting: { reason: 'PostStartHookError', message: 'it said no' } };
  const killed = { terminated: { exitCode: 137, reason: 'Error' } };
  await setStatus('one', status(hookFailed, ended(4)));
  await setStatus('one', status(BACK_OFF, killed));
  await setStatus('one', status({ running: {} }, killed));
  await setStatus('one', status(BACK_OFF, killed));
  expect(said).toEqual(
    [
      'failing: exit code 4',
      'ending: exit code 0',
      'failing: its process cannot be started: task ID: exec: "bash": not found',
      'failing: its postStart hook failed, it said no',
      'failing: exit code 137',
    ].map(
      (cause) => `pod/one: container app keeps ${cause}; see 'lifepod why one -n a --data-dir /d' in another terminal`,
    ),
  );
  expect(isOver).toBe(false);
});

test('a session says why the liveness probe of a container fails again and again, once', async () => {
  const { backend, watched, said, setStatus, recordProbe } = await watch();
  const one = await backend.set(PODS, podOf('one', { labels }));
  watched.created(one);
  watched.complete();
  for (const attempt of [0, 1]) {
    await recordProbe(one, attempt, `dead at ${attempt}\n`);
    const looping = status(BACK_OFF, ended(137));
    await setStatus('one', {
      ...looping,
      containerStatuses: looping.containerStatuses.map((each) => ({ ...each, restartCount: attempt })),
    });
  }
  expect(said).toEqual([
    "pod/one: container app keeps failing: the liveness probe of container app failed, dead at 0; see 'lifepod why one -n a --data-dir /d' in another terminal",
  ]);
});

test('a session reports each Pod that fails by itself while others run, once, with the cause in its record', async () => {
  const { backend, watched, failures, setStatus, recordProbe } = await watch();
  const failed = (exitCode: number) => ({ ...status(ended(exitCode)), phase: 'Failed' });
  for (const name of ['bad', 'runs']) watched.created(await backend.set(PODS, podOf(name, { labels })));
  const live = await backend.set(PODS, podOf('live', { labels }));
  watched.created(live);
  watched.complete();
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j', uid: 'j' } };
  await backend.set(PODS, podOf('of-job', { labels, ...ownerOf(job) }));
  await recordProbe(live, 0, 'dead\n');
  for (const name of ['bad', 'of-job']) await setStatus(name, failed(9));
  for (const message of ['', 'changed']) await setStatus('live', { ...failed(137), message });
  expect(failures).toMatchObject([
    { title: 'pod/bad', exitCode: 9 },
    { title: 'pod/live', exitCode: 137, cause: 'the liveness probe of container app failed, dead' },
  ]);
  expect(failures[0]).not.toHaveProperty('cause');
});

test('a session reports once that a defer container will not get its image, did not run or failed', async () => {
  const { backend, watched, said, setStatus } = await watch();
  const deferContainers = [
    { name: 'bye', image: 'busybox:1.99' },
    { name: 'late', image: 'x' },
    { name: 'undue', image: 'x' },
    { name: 'given-up', image: 'x' },
    { name: 'failed', image: 'x' },
    { name: 'slow', image: 'x' },
    { name: 'late-end', image: 'x' },
  ];
  const one = podOf('one', { labels });
  watched.created(await backend.set(PODS, { ...one, spec: { ...spec, deferContainers } }));
  watched.complete();
  const of = (name: string, state: object, more: object = {}) => ({
    ...{ name, image: '', imageID: '', ready: false, restartCount: 0, state },
    ...more,
  });
  const pull = 'failed to do request: Head "https://r/v2": dial tcp: lookup r: no such host';
  const unpulled = 'the name of its registry, r, cannot be resolved: is this machine offline?';
  const advice =
    "make it from this machine's busybox: lifepod image make busybox:1.99 --data-dir /d; " +
    "load it from an archive, without a registry, such as 'docker save busybox:1.99 > FILE' writes on another machine: lifepod image load FILE --data-dir /d";
  const later = advice.replaceAll(/make it|load it/g, 'for later Pods, $&');
  for (const reason of ['ErrImagePull', 'ImagePullBackOff', 'ErrImagePull'])
    await setStatus('one', {
      phase: 'Running',
      deferContainerStatuses: [of('bye', { waiting: { reason, message: pull } })],
    });
  expect(said.splice(0)).toEqual([
    `pod/one: the image busybox:1.99 of its defer container bye cannot be pulled (${unpulled}); ${advice}; see 'lifepod why one -n a --data-dir /d' in another terminal`,
  ]);
  const end = (exitCode: number, reason: string, message?: string) => ({ terminated: { exitCode, reason, message } });
  for (const phase of ['Terminating', 'Succeeded'])
    await setStatus('one', {
      phase,
      deferContainerStatuses: [
        of('bye', end(128, 'Error', `ErrImagePull: ${pull}`)),
        of('late', end(137, 'Skipped', 'the grace period had passed')),
        of('given-up', end(137, 'Skipped', 'given up')),
        of('undue', end(137, 'Skipped', 'not due on Completed')),
        of('failed', end(1, 'Error', 'no such host\n'), { containerID: 'c://1' }),
        of('slow', end(143, 'DeadlineExceeded', 'its time was over'), { containerID: 'c://2' }),
        of('late-end', end(0, 'DeadlineExceeded', 'the PreExit stage had ended'), { containerID: 'c://3' }),
      ],
    });
  const unstarted = podOf('unstarted', { labels });
  await backend.set(PODS, { ...unstarted, spec: { containers: [{ name: 'app', image: 'x' }], deferContainers } });
  await setStatus('unstarted', {
    phase: 'Terminating',
    deferContainerStatuses: [of('bye', end(137, 'Skipped', 'no container of the Pod had started'))],
  });
  expect(said.splice(0)).toEqual([
    `pod/one: defer container bye could not start, its image busybox:1.99 cannot be pulled (${unpulled}); do by hand what bye would have done`,
    'pod/one: defer container late did not run, the grace period had passed; do by hand what late would have done',
    'pod/one: defer container failed failed: exit code 1 (Error): no such host; do by hand what failed would have done',
    'pod/one: defer container slow timed out: exit code 143 (DeadlineExceeded): its time was over; do by hand what slow would have done',
    'pod/one: defer container late-end timed out: exit code 0, but only after its time was over (DeadlineExceeded): the PreExit stage had ended; check whether late-end did all its work, and do the rest by hand',
  ]);
  await backend.set(PODS, { ...podOf('quick', { labels }), spec: { ...spec, deferContainers } });
  await setStatus('quick', {
    phase: 'Failed',
    deferContainerStatuses: [of('bye', end(128, 'Error', `ErrImagePull: ${pull}`))],
  });
  expect(said).toEqual([
    `pod/quick: defer container bye could not start, its image busybox:1.99 cannot be pulled (${unpulled}); do by hand what bye would have done; ${later}`,
  ]);
  expect(await watched.over).toBeUndefined();
});

const jobOf = (name: string, more: object = {}): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name, namespace: 'a', labels },
  spec: { template: { metadata: { name: '' }, spec: { ...spec, restartPolicy: 'Never' } }, ...more },
});
const noAccount = (pod: string): string =>
  `pods "${pod}" is forbidden: error looking up service account a/ghost: serviceaccount "ghost" not found`;
const REMEDY =
  'create the ServiceAccount, and the Pods are created automatically: kubectl create serviceaccount ghost -n a --kubeconfig /d/kubeconfig';
const refusedBy = (object: KubeObject, name: string, message: string): CoreV1Event => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name, namespace: 'a' },
  ...{ type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${message}` },
  involvedObject: {
    apiVersion: object.apiVersion,
    kind: object.kind,
    namespace: 'a',
    name: object.metadata.name,
    uid: uidOf(object),
  },
});

test('a session whose Job cannot create its Pods says why once, and is over after two minutes', async () => {
  const { backend, watched, said, timers } = await watch();
  const [one, other] = [await backend.set(JOBS, jobOf('one')), await backend.set(JOBS, jobOf('two'))];
  watched.created(one);
  watched.complete();
  await backend.set(EVENTS, refusedBy(other, 'e0', noAccount('two-1')));
  await vi.waitFor(() => expect(said.splice(0)).toHaveLength(1));
  // A Job that has a Pod, or is suspended, is not an obstacle.
  await backend.set(PODS, podOf('two-2', ownerOf(other)));
  await backend.set(EVENTS, refusedBy(one, 'e1', noAccount('one-1')));
  await backend.set(EVENTS, refusedBy(one, 'e2', noAccount('one-2')));
  await vi.waitFor(() => expect(said).toHaveLength(1));
  await backend.set(EVENTS, refusedBy(one, 'e3', 'pods "one-3" is forbidden: exceeded quota: q'));
  await vi.waitFor(() => expect(said).toHaveLength(2));
  await watched.settled();
  const see = "see 'lifepod why job/one -n a --data-dir /d' in another terminal";
  expect(said).toEqual([
    `job/one cannot create Pods: ${noAccount('one-1')}; ${REMEDY}; ${see}`,
    `job/one cannot create Pods: pods "one-3" is forbidden: exceeded quota: q; ${see}`,
  ]);
  timers.advance(OBSTACLE_MILLIS);
  expect(await watched.over).toBe(
    'job/one cannot start for 120 s: it has no Pods: pods "one-3" is forbidden: exceeded quota: q',
  );
});

test('a session continues when its Job can create Pods at last, is suspended, or does not belong to it', async () => {
  const { backend, watched, said, timers } = await watch();
  const [one, idle] = [
    await backend.set(JOBS, jobOf('one')),
    await backend.set(JOBS, jobOf('idle', { suspend: true })),
  ];
  const foreign = jobOf('foreign');
  foreign.metadata.labels = {};
  watched.created(one);
  watched.complete();
  let isOver = false;
  void watched.over.then(() => {
    isOver = true;
  });
  await backend.set(EVENTS, refusedBy(await backend.set(JOBS, foreign), 'e0', noAccount('foreign-1')));
  for (const job of [idle, one]) await backend.set(EVENTS, refusedBy(job, `e-${job.metadata.name}`, noAccount('x')));
  await vi.waitFor(() => expect(said).toHaveLength(2));
  timers.advance(OBSTACLE_MILLIS / 2);
  await backend.set(PODS, podOf('one-2', ownerOf(one)));
  await vi.waitFor(() => expect(watched.pods()).toHaveLength(1));
  // The Pod ends the obstacle, also after its deletion.
  await backend.remove(PODS, 'a', 'one-2');
  await vi.waitFor(() => expect(watched.pods()).toHaveLength(0));
  timers.advance(OBSTACLE_MILLIS);
  await watched.settled();
  expect(isOver).toBe(false);
});

test('a session says why the ReplicaSet of its Deployment cannot create Pods, under the name of the Deployment, and continues', async () => {
  const { backend, watched, said, timers } = await watch();
  let isOver = false;
  void watched.over.then(() => {
    isOver = true;
  });
  const selector = { matchLabels: { app: 'web' } };
  const common = { selector, template: { metadata: { name: '', labels: { app: 'web' } }, spec } };
  const apiVersion = 'apps/v1';
  const web = await backend.set<Deployment>(DEPLOYMENTS, {
    apiVersion,
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'a', labels },
    spec: common,
  });
  watched.created(web);
  watched.complete();
  for (const name of ['web-1', 'web-2']) {
    const metadata = { name, namespace: 'a', ...ownerOf(web) };
    const set = await backend.set<ReplicaSet>(REPLICA_SETS, { apiVersion, kind: 'ReplicaSet', metadata, spec: common });
    await backend.set(EVENTS, refusedBy(set, `${name}.0`, noAccount(name).replaceAll('ghost', 'default')));
    await backend.set(EVENTS, refusedBy(set, `${name}.1`, noAccount(name)));
  }
  await backend.set(EVENTS, refusedBy(web, 'last', 'no'));
  await vi.waitFor(() => expect(said).toHaveLength(1));
  await watched.settled();
  expect(said).toEqual([
    `deployment/web cannot create Pods: ${noAccount('web-1')}; ${REMEDY}; see 'lifepod why deployment/web -n a --data-dir /d' in another terminal`,
  ]);
  timers.advance(OBSTACLE_MILLIS);
  expect(isOver).toBe(false);
});

test('a session reports each Job that fails, once, after the logs of its Pods are printed', async () => {
  const { backend, watched, failures, followed } = await watch();
  const one = await backend.set(JOBS, jobOf('one'));
  watched.created(one);
  watched.complete();
  await backend.set(PODS, podOf('one-1', ownerOf(one)));
  await watched.settled();
  const at = '2026-01-01T00:00:00Z';
  const ended = { status: 'True', reason: 'BackoffLimitExceeded', message: 'Job has reached the limit' };
  for (const failed of [1, 2]) {
    const conditions = ['FailureTarget', 'Failed'].map((type) => ({ ...ended, type, lastTransitionTime: at }));
    await backend.setStatus(JOBS, 'a', 'one', { startTime: at, failed, conditions });
  }
  expect(await watched.over).toBeUndefined();
  await watched.settled();
  expect(followed).toEqual(['one-1']);
  expect(failures).toEqual([
    { uid: uidOf(one), title: 'job/one', exitCode: 1, condition: 'BackoffLimitExceeded: Job has reached the limit' },
  ]);
});

test('a session says once what waits for the user: gates, a suspended Job, a DaemonSet that no node fits', async () => {
  const { backend, watched, said, setStatus } = await watch();
  const gated = { ...podOf('gated', { labels }), spec: { ...spec, schedulingGates: [{ name: 'x.example/gate' }] } };
  await backend.set(PODS, gated);
  const readinessGates = [{ conditionType: 'x.example/ready' }];
  await backend.set(PODS, { ...podOf('unready', { labels }), spec: { ...spec, readinessGates } });
  const message = 'corresponding condition of pod readiness gate "x.example/ready" does not exist.';
  const ready = { type: 'Ready', status: 'False', reason: 'ReadinessGatesNotReady', message };
  await setStatus('unready', { phase: 'Pending' });
  for (const phase of ['Pending', 'Running']) await setStatus('unready', { phase, conditions: [ready] });
  const template = { metadata: { name: '' }, spec: { ...spec, restartPolicy: 'Never' } };
  const suspended: Job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'later', namespace: 'a', labels },
    spec: { suspend: true, template },
  };
  watched.created(await backend.set<Job>(JOBS, suspended));
  const matchLabels = { app: 'x' };
  const daemonSet: DaemonSet = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'each', namespace: 'a', labels },
    spec: { selector: { matchLabels }, template: { metadata: { name: '', labels: matchLabels }, spec } },
  };
  const { metadata } = await backend.set<DaemonSet>(DAEMON_SETS, daemonSet);
  const counts = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
  await backend.setStatus(DAEMON_SETS, 'a', 'each', { ...counts, observedGeneration: metadata.generation });
  const begins = [
    'pod/gated is not scheduled: its scheduling gates x.example/gate have not been removed; wait: ',
    'pod/unready is not ready: its readiness gates are not met, ',
    'job/later creates no Pods: it is suspended; resume it: ',
    'daemonset/each creates no Pods: no node fits it; label a node ',
  ];
  await vi.waitFor(() => expect(said).toEqual(begins.map((begin) => expect.stringContaining(begin))));
});
