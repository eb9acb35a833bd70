import { beforeEach, expect, test } from 'vitest';
import { cpuMillisOf } from '../../machinery/testing.ts';
import { type Connection, RuntimeCallError } from './connection.ts';
import { isStartCut } from './cut-start.ts';
import { containerFacts, emptyFacts, type Facts, sandboxFacts } from './facts.ts';
import { ATTEMPT_LABEL, POD_UID_LABEL } from './labels.ts';
import { createObserver, type Observer } from './observer.ts';
import type { ContainerStatus } from './responses.ts';

const { signal } = new AbortController();
const labels = { [POD_UID_LABEL]: 'uid-1', [ATTEMPT_LABEL]: '0' };
const CONTAINER = {
  id: 'c1',
  podSandboxId: 's1',
  metadata: { name: 'init', attempt: 0 },
  image: { image: 'busybox' },
  imageRef: 'busybox',
  state: 'CONTAINER_EXITED',
  createdAt: 1_000_000,
  labels,
  annotations: {},
};
const CONTAINER_STATUS = {
  state: 'CONTAINER_EXITED',
  exitCode: 3,
  reason: 'Error',
  startedAt: 2_000_000,
  finishedAt: 5_000_000,
  imageRef: 'busybox@sha256:1',
  message: '',
};
const SANDBOX = {
  id: 's1',
  metadata: { name: 'pod', uid: 'uid-1', namespace: 'default', attempt: 2 },
  state: 'SANDBOX_READY',
  createdAt: 1_000_000,
  labels,
};
const SANDBOX_STATUS = {
  state: 'SANDBOX_READY',
  network: { ip: '10.0.0.1', additionalIps: [{ ip: 'fd00::1' }] },
};
const UNKNOWN = { exitCode: 255, reason: 'Unknown' };

let sandboxes: object[];
let containers: object[];
/** By method: the status in CRI's response; absent: the object does not exist. */
let statuses: { ContainerStatus?: object; PodSandboxStatus?: object };
/** The status calls, each with the ID of its object. */
let calls: string[];
let facts: Facts;
let shimExit: { exitCode: number; finishedAt: number } | undefined;
let kept: ReadonlySet<string> | undefined;
let observer: Observer;

const connection = {
  async unary(name: string, request: { containerId?: string; podSandboxId?: string }) {
    const method = name.slice(name.indexOf('/') + 1) as keyof typeof statuses | 'ListPodSandbox' | 'ListContainers';
    if (method === 'ListPodSandbox') return { items: sandboxes };
    if (method === 'ListContainers') return { containers };
    calls.push(`${method} ${request.containerId ?? request.podSandboxId}`);
    const status = statuses[method];
    if (status === undefined) throw new RuntimeCallError('NotFound', 'no such object');
    return { status };
  },
} as unknown as Connection;

beforeEach(() => {
  [sandboxes, containers, statuses, calls, facts] = [[], [], {}, [], emptyFacts()];
  [shimExit, kept] = [undefined, undefined];
  const exits = {
    exitOf: (id: string) => (id === 'c1' ? shimExit : undefined),
    keepOnly: (ids: ReadonlySet<string>) => {
      kept = ids;
    },
  };
  observer = createObserver(connection, facts, {}, exits);
});

const observedContainer = async () => (await observer.observe('uid-1', signal)).containers[0];
const observedSandbox = async () => (await observer.observe('uid-1', signal)).sandboxes[0];
const container = (state: string, more: object = {}): object => ({ ...CONTAINER, state, ...more });

test('a container that exited is queried once, and later observations are the same', async () => {
  containers = [CONTAINER];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, message: 'disk full' } };
  const first = await observedContainer();
  expect(first).toEqual({
    id: 'c1',
    sandboxId: 's1',
    podUid: 'uid-1',
    name: 'init',
    kind: 'app',
    attempt: 0,
    createdAt: 1,
    startedAt: 2,
    image: 'busybox',
    imageId: 'busybox@sha256:1',
    annotations: {},
    state: 'exited',
    exitCode: 3,
    reason: 'Error',
    finishedAt: 5,
    message: 'disk full',
  });
  expect(await observedContainer()).toBe(first);
  expect(calls).toEqual(['ContainerStatus c1']);
});

test('a container that exited without a reason and a message has neither', async () => {
  containers = [CONTAINER];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, reason: '' } };
  expect(Object.keys((await observedContainer()) ?? {})).not.toEqual(expect.arrayContaining(['reason']));
  expect(Object.keys((await observedContainer()) ?? {})).not.toEqual(expect.arrayContaining(['message']));
});

test('a container that is only created is not queried', async () => {
  containers = [container('CONTAINER_CREATED')];
  expect(await observedContainer()).toMatchObject({ state: 'created', startedAt: undefined, imageId: 'busybox' });
  expect(calls).toEqual([]);
});

test('a container has the start time that CRI records, not the earlier one of the start event', async () => {
  containerFacts(facts, 'c1', 'uid-1').startEventAt = 1;
  containers = [container('CONTAINER_CREATED')];
  expect(await observedContainer()).toMatchObject({ state: 'created', startedAt: undefined });
  containers = [container('CONTAINER_RUNNING')];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, state: 'CONTAINER_CREATED', startedAt: 0 } };
  expect(await observedContainer()).toMatchObject({ state: 'created', startedAt: undefined });
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, state: 'CONTAINER_RUNNING' } };
  expect(await observedContainer()).toMatchObject({ state: 'running', startedAt: 2 });
});

test('a container that is listed as created is queried if an event has reported its exit', async () => {
  containerFacts(facts, 'c1', 'uid-1').exit = { exitCode: 0, finishedAt: 9 };
  containers = [container('CONTAINER_CREATED')];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, state: 'CONTAINER_RUNNING', exitCode: 0, finishedAt: 0 } };
  expect(await observedContainer()).toMatchObject({ state: 'exited', exitCode: 0, startedAt: 2, finishedAt: 9 });
  expect(calls).toEqual(['ContainerStatus c1']);
});

test('a container that runs is queried until its start time and its image are known', async () => {
  containers = [container('CONTAINER_RUNNING')];
  const status = { ...CONTAINER_STATUS, state: 'CONTAINER_RUNNING', finishedAt: 0, imageRef: '' };
  statuses = { ContainerStatus: status };
  expect(await observedContainer()).toMatchObject({ state: 'running', startedAt: 2, imageId: 'busybox' });
  statuses = { ContainerStatus: { ...status, startedAt: 0, imageRef: 'busybox@sha256:1' } };
  expect(await observedContainer()).toMatchObject({ state: 'running', startedAt: 2, imageId: 'busybox@sha256:1' });
  await observedContainer();
  expect(calls).toEqual(['ContainerStatus c1', 'ContainerStatus c1']);
});

test('a container has the state of its status if the status is newer than the list', async () => {
  containers = [container('CONTAINER_CREATED')];
  containerFacts(facts, 'c1', 'uid-1').exit = { exitCode: 1, finishedAt: 9 };
  statuses = { ContainerStatus: CONTAINER_STATUS };
  expect(await observedContainer()).toMatchObject({ state: 'exited', exitCode: 3, finishedAt: 5 });
});

test.each([
  ['the exit code 0', 0, {}, 'Completed'],
  ['another exit code', 1, {}, 'Error'],
  ['an OOM kill', 137, { outOfMemory: true }, 'OOMKilled'],
])(
  'a container that CRI still reports as running is exited after an event with %s',
  async (_, exitCode, more, reason) => {
    Object.assign(containerFacts(facts, 'c1', 'uid-1'), { exit: { exitCode, finishedAt: 9 }, ...more });
    containers = [container('CONTAINER_RUNNING')];
    statuses = { ContainerStatus: { ...CONTAINER_STATUS, state: 'CONTAINER_RUNNING', finishedAt: 0 } };
    expect(await observedContainer()).toMatchObject({ state: 'exited', exitCode, finishedAt: 9, reason });
  },
);

test('a container that the kernel killed for its memory is OOMKilled whatever CRI reports', async () => {
  containerFacts(facts, 'c1', 'uid-1').outOfMemory = true;
  containers = [CONTAINER];
  statuses = { ContainerStatus: CONTAINER_STATUS };
  expect(await observedContainer()).toMatchObject({ reason: 'OOMKilled', exitCode: 3 });
});

const CUT = 'failed to create containerd task: failed to create shim task: context canceled: unknown';
const CREATED_BEFORE = 'failed to create containerd task: task c1: already exists';
const FAILED_START = { exitCode: 128, reason: 'StartError', startedAt: 0 };

test.each([
  CUT,
  CREATED_BEFORE,
  'failed to start containerd task "c1": context canceled: unknown',
  'failed to create containerd task: failed to start shim: start failed: : signal: killed: unknown',
  'failed to create containerd task: failed to start shim: start failed: unix:///run/containerd/s/1: context canceled',
  'failed to create containerd task: failed to get task pid: context canceled: unknown',
  'failed to create containerd task: failed to create shim task: failed to start shim: start failed: x\n: signal: killed: unknown',
])('a container whose start failed with "%s" is observed as created, and queried once', async (message) => {
  containers = [CONTAINER];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, ...FAILED_START, message } };
  expect(await observedContainer()).toMatchObject({ state: 'created', attempt: CONTAINER.metadata.attempt });
  expect(await observedContainer()).toMatchObject({ state: 'created' });
  expect(calls).toEqual(['ContainerStatus c1']);
});

test.each([
  ['could not be started in time', 'failed to start containerd task "c1": context deadline exceeded: unknown', 0],
  ['ran', CUT, 2_000_000],
  ['could not be started', 'failed to create containerd task: exec: "context canceled": not found: unknown', 0],
])('a container that %s is observed', async (_, message, startedAt) => {
  containers = [CONTAINER];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, ...FAILED_START, message, startedAt } };
  expect(await observedContainer()).toMatchObject({ state: 'exited', reason: 'StartError', message });
});

test('a container that is removed after the list is omitted, and its facts are deleted', async () => {
  containers = [CONTAINER];
  expect(await observedContainer()).toBeUndefined();
  expect([...facts.containers.keys()]).toEqual([]);
});

test.each([
  ['a shim reported the exit that CRI does not know', UNKNOWN, { exitCode: 0, reason: 'Completed', finishedAt: 7 }],
  [
    'CRI and a shim report different exits',
    { exitCode: 255, reason: 'Error' },
    { exitCode: 255, reason: 'Error', finishedAt: 5 },
  ],
  [
    'CRI reports the reason Unknown for another exit code',
    { exitCode: 1, reason: 'Unknown' },
    { exitCode: 1, reason: 'Unknown', finishedAt: 5 },
  ],
])('a container has the correct exit if %s', async (_, status, expected) => {
  shimExit = { exitCode: 0, finishedAt: 7 };
  containers = [CONTAINER];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, ...status } };
  expect(await observedContainer()).toMatchObject({ id: 'c1', state: 'exited', ...expected });
});

test('a container keeps the unknown exit of CRI if no shim and no event has reported it', async () => {
  containers = [CONTAINER];
  statuses = { ContainerStatus: { ...CONTAINER_STATUS, ...UNKNOWN } };
  expect(await observedContainer()).toMatchObject({ state: 'exited', ...UNKNOWN, finishedAt: 5 });
});

test('a sandbox that is ready has the addresses of its status, which is queried once', async () => {
  sandboxes = [SANDBOX];
  statuses = { PodSandboxStatus: SANDBOX_STATUS };
  const expected = {
    id: 's1',
    podUid: 'uid-1',
    namespace: 'default',
    name: 'pod',
    attempt: 2,
    ready: true,
    createdAt: 1,
    ips: ['10.0.0.1', 'fd00::1'],
  };
  expect(await observedSandbox()).toEqual(expected);
  expect(await observedSandbox()).toEqual(expected);
  expect(calls).toEqual(['PodSandboxStatus s1']);
});

test.each([
  ['no network', null],
  ['no address', { ip: '', additionalIps: [] }],
])('a sandbox whose status has %s has no address', async (_, network) => {
  sandboxes = [SANDBOX];
  statuses = { PodSandboxStatus: { ...SANDBOX_STATUS, network } };
  expect(await observedSandbox()).toMatchObject({ ready: true, ips: [] });
});

test('a sandbox that is not ready is not queried and has no address', async () => {
  sandboxFacts(facts, 's1', 'uid-1').ips = ['10.0.0.1'];
  sandboxes = [{ ...SANDBOX, state: 'SANDBOX_NOTREADY' }];
  expect(await observedSandbox()).toMatchObject({ ready: false, ips: [] });
  expect(calls).toEqual([]);
});

test('a sandbox that stops after the list is not ready, and its addresses are not remembered', async () => {
  sandboxes = [SANDBOX];
  statuses = { PodSandboxStatus: { ...SANDBOX_STATUS, state: 'SANDBOX_NOTREADY' } };
  expect(await observedSandbox()).toMatchObject({ ready: false, ips: [] });
  expect(facts.sandboxes.get('s1')?.ips).toBeUndefined();
});

test('a sandbox whose first process has ended is not ready, even if CRI reports it as ready', async () => {
  sandboxFacts(facts, 's1', 'uid-1').exited = true;
  sandboxes = [SANDBOX];
  statuses = { PodSandboxStatus: SANDBOX_STATUS };
  expect(await observedSandbox()).toMatchObject({ ready: false, ips: [] });
});

test('a sandbox that is removed after the list is omitted', async () => {
  sandboxes = [SANDBOX];
  expect(await observedSandbox()).toBeUndefined();
});

test('observeAll() groups by Pod and forgets the facts and shim exits of objects that are not listed', async () => {
  const other = { ...labels, [POD_UID_LABEL]: 'uid-2' };
  sandboxes = [SANDBOX, { ...SANDBOX, id: 's2', labels: other }];
  containers = [container('CONTAINER_CREATED'), container('CONTAINER_CREATED', { id: 'c2', labels: other })];
  statuses = { PodSandboxStatus: SANDBOX_STATUS };
  containerFacts(facts, 'c0', 'uid-0');
  sandboxFacts(facts, 's0', 'uid-0');
  const all = [...(await observer.observeAll(signal))].map(([uid, pod]) => [
    uid,
    pod.sandboxes.map(({ id }) => id),
    pod.containers.map(({ id }) => id),
  ]);
  expect(all).toEqual([
    ['uid-1', ['s1'], ['c1']],
    ['uid-2', ['s2'], ['c2']],
  ]);
  expect([...facts.containers.keys(), ...facts.sandboxes.keys()]).toEqual(['c1', 'c2', 's1', 's2']);
  expect(kept).toEqual(new Set(['c1', 'c2']));
});

test('a long message of a failed start is examined without a stall', () => {
  const message = `failed to create containerd task: ${'start failed: : '.repeat(20_000)}: signal: lost`;
  const status = { state: 'CONTAINER_EXITED', startedAt: 0, message } as ContainerStatus;
  expect(cpuMillisOf(() => expect(isStartCut(status)).toBe(false))).toBeLessThan(100);
});
