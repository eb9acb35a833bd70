import { expect, test } from 'vitest';
import type {
  CoreV1Event,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  PriorityClass,
} from '../api/generated/types.ts';
import {
  EVENTS,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  PRIORITY_CLASSES,
} from '../api/resources.ts';
import { registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { conflict, serviceUnavailable } from '../machinery/status.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import type { WatchEvent } from '../ports/backend.ts';
import { BIND_COMPLETED } from '../scheduling/volume-claims.ts';
import { startScheduler } from './scheduler.ts';

const node = (name: string, change: { spec?: object; status?: object } = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  spec: { ...change.spec },
  status: { allocatable: { cpu: '1', memory: '1Gi', pods: '110' }, conditions: [], ...change.status } as Node['status'],
});
const pod = (name: string, spec: object = {}, cpu = '100m'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a' },
  spec: { containers: [{ name: 'app', image: 'x', resources: { requests: { cpu } } }], ...spec },
});
const priorityClass = (name: string, value: number, preemptionPolicy = 'PreemptLowerPriority'): PriorityClass => ({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name },
  value,
  preemptionPolicy,
});

async function setUp(objects: { nodes?: Node[]; pods?: Pod[]; deleted?: string[]; classes?: PriorityClass[] } = {}) {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const stop = new AbortController();
  for (const each of objects.classes ?? []) await backend.set(PRIORITY_CLASSES, each);
  for (const each of objects.nodes ?? []) await backend.set(NODES, each);
  for (const each of objects.pods ?? []) await backend.set(PODS, each);
  for (const name of objects.deleted ?? []) await backend.remove(PODS, 'a', name);
  const client = clientOf(backend);
  let wake = (): void => {};
  for (const ref of [PODS, EVENTS]) {
    void backend.watch(ref, { resourceVersion: '0' }, (_: WatchEvent) => wake(), stop.signal);
  }
  /** Resolves when `holds` returns true. Calls it now and after each change of a Pod or an Event. */
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const podNamed = (name: string): Pod | undefined =>
    (backend.objects(PODS) as Pod[]).find((each) => each.metadata.name === name);
  const nodeOf = (name: string): string | undefined => podNamed(name)?.spec?.nodeName;
  const events = () =>
    (backend.objects(EVENTS) as CoreV1Event[]).map(({ type, reason, message }) => `${type} ${reason} ${message}`);
  await startScheduler(
    withInformers({ client, timers, log: silentLog, schedulerName: 'default-scheduler', signal: stop.signal }),
  );
  // startScheduler() resolves after the first lists, before the watches start: 6 watches of informers, and 2 of this test.
  while (backend.calls.filter((call) => call.startsWith('watch')).length < 8) await new Promise(setImmediate);
  return { backend, timers, stop, until, podNamed, nodeOf, events };
}

test('existing and new Pods are bound immediately, with an Event', async () => {
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [node('n')], pods: [pod('x')] });
  await until(() => nodeOf('x') === 'n');
  await backend.set(PODS, pod('y'));
  await until(() => nodeOf('y') === 'n' && events().length === 2);
  expect(events()).toEqual([
    'Normal Scheduled Successfully assigned a/x to n',
    'Normal Scheduled Successfully assigned a/y to n',
  ]);
  expect(backend.calls.filter((call) => call.includes('/binding'))).toEqual([
    'create pods/binding a/x',
    'create pods/binding a/y',
  ]);
  stop.abort();
});

test('Pods that are bound, terminating, gated, or for another scheduler are ignored', async () => {
  const deleting = pod('deleting');
  // The finalizer keeps the deleted Pod in the API.
  deleting.metadata.finalizers = ['example.com/stays'];
  const pods = [
    pod('bound', { nodeName: 'elsewhere' }),
    deleting,
    pod('gated', { schedulingGates: [{ name: 'wait' }] }),
    pod('foreign', { schedulerName: 'mine' }),
    { ...pod('ended'), status: { phase: 'Failed' } } as Pod,
  ];
  const { backend, until, podNamed, nodeOf, stop } = await setUp({ nodes: [node('n')], pods, deleted: ['deleting'] });
  await backend.set(PODS, pod('ours'));
  await until(() => nodeOf('ours') === 'n');
  expect(backend.calls.filter((call) => call.includes('/binding'))).toEqual(['create pods/binding a/ours']);
  const gated = podNamed('gated') as Pod;
  await backend.set(PODS, { ...gated, spec: { ...gated.spec, schedulingGates: [] }, status: undefined } as Pod);
  await until(() => nodeOf('gated') === 'n');
  stop.abort();
});

test('resources of an assumed Pod are not allocated again before the API shows the binding', async () => {
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [node('n')] });
  await Promise.all(['x', 'y'].map((name) => backend.set(PODS, pod(name, {}, '600m'))));
  await until(() => nodeOf('x') === 'n' && events().length === 2);
  expect(nodeOf('y')).toBeUndefined();
  expect(events().sort()).toEqual([
    'Normal Scheduled Successfully assigned a/x to n',
    'Warning FailedScheduling 0/1 nodes are available: 1 Insufficient cpu.',
  ]);
  stop.abort();
});

test('an unschedulable Pod gets a condition and an Event, and is retried when resources become free', async () => {
  const { backend, until, nodeOf, events, stop } = await setUp({ pods: [pod('x', {}, '600m')] });
  const condition = () => (backend.objects(PODS)[0] as Pod).status?.conditions?.[0];
  await until(() => condition() !== undefined && events().length === 1);
  expect(condition()).toMatchObject({
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message: 'no nodes available to schedule pods',
  });
  const since = condition()?.lastTransitionTime;
  await backend.set(NODES, node('n', { spec: { unschedulable: true } }));
  await until(() => condition()?.message?.includes('unschedulable') === true);
  expect(condition()?.lastTransitionTime).toBe(since);
  await backend.set(NODES, node('n'));
  await until(() => nodeOf('x') === 'n');

  await backend.set(PODS, pod('y', {}, '600m'));
  await until(() => events().some((event) => event.includes('Insufficient')));
  await backend.setStatus(PODS, 'a', 'x', { phase: 'Succeeded' });
  await until(() => nodeOf('y') === 'n');
  await backend.set(PODS, pod('z', {}, '600m'));
  await until(() => events().filter((event) => event.includes('FailedScheduling')).length === 4);
  await backend.remove(PODS, 'a', 'y');
  await until(() => nodeOf('z') === 'n');
  stop.abort();
});

test('a Pod is not bound to a node that is not ready, even before the taint is set, until the node is ready', async () => {
  const ready = (status: string): Node => node('n', { status: { conditions: [{ type: 'Ready', status }] } });
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [ready('False')], pods: [pod('x')] });
  await until(() => events().length === 1);
  expect(events()).toEqual([
    'Warning FailedScheduling 0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.',
  ]);
  await backend.set(NODES, ready('True'));
  await until(() => nodeOf('x') === 'n');
  stop.abort();
});

test('the heartbeat of a node causes no retry', async () => {
  const full = node('n', { spec: { unschedulable: true } });
  const { backend, until, events, stop } = await setUp({ nodes: [full], pods: [pod('x')] });
  await until(() => events().length === 1);
  const heartbeat = { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-31T00:00:00Z' };
  const changed = node('n', { spec: { unschedulable: true }, status: { conditions: [heartbeat] } });
  await backend.set(NODES, changed);
  await until(() => events().length === 1 && (backend.objects(EVENTS)[0] as CoreV1Event).count === 2);
  const again = { ...heartbeat, lastHeartbeatTime: '2026-01-31T00:00:10Z' };
  await backend.set(NODES, node('n', { spec: { unschedulable: true }, status: { conditions: [again] } }));
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  expect((backend.objects(EVENTS)[0] as CoreV1Event).count).toBe(2);
  stop.abort();
});

test('Pods of higher priority are scheduled first, at the start and after resources become free', async () => {
  const classes = [priorityClass('p0', 0, 'Never'), priorityClass('p3', 3, 'Never'), priorityClass('p5', 5, 'Never')];
  const pods = [
    pod('low', { priorityClassName: 'p0' }, '600m'),
    pod('high', { priorityClassName: 'p5' }, '600m'),
    pod('middle', { priorityClassName: 'p3' }, '600m'),
  ];
  const { backend, until, nodeOf, stop } = await setUp({ nodes: [node('n')], pods, classes });
  await until(() => nodeOf('high') === 'n');
  await backend.remove(PODS, 'a', 'high');
  await until(() => nodeOf('middle') === 'n');
  expect(nodeOf('low')).toBeUndefined();
  stop.abort();
});

test('Pods of lower priority are preempted, and the freed resources go to the preempting Pod', async () => {
  const { backend, until, podNamed, nodeOf, events, stop } = await setUp({
    nodes: [node('n')],
    pods: [pod('low', { nodeName: 'n' }, '900m')],
    classes: [priorityClass('important', 5)],
  });
  await backend.set(PODS, pod('high', { priorityClassName: 'important' }, '600m'));
  await until(() => events().length === 2);
  const uid = podNamed('high')?.metadata.uid;
  expect(events()).toEqual([
    'Warning FailedScheduling 0/1 nodes are available: 1 Insufficient cpu.',
    `Normal Preempted Preempted by pod ${uid} on node n`,
  ]);
  expect(podNamed('low')?.metadata.deletionTimestamp).toBeDefined();
  expect(podNamed('low')?.status?.conditions).toMatchObject([
    {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: 'default-scheduler: preempting to accommodate a higher priority pod',
    },
  ]);
  expect(podNamed('high')?.status?.nominatedNodeName).toBe('n');

  await backend.set(PODS, pod('late', {}, '600m'));
  await backend.remove(PODS, 'a', 'low');
  await until(() => nodeOf('high') === 'n' && events().length === 4);
  expect(nodeOf('late')).toBeUndefined();
  expect(events().filter((event) => event.includes('Preempted'))).toHaveLength(1);
  stop.abort();
});

test('preemption keeps a Pod whose PodDisruptionBudget allows no disruption, although the Pod is less important', async () => {
  const guarded = pod('guarded', { nodeName: 'n' }, '400m');
  const { backend, until, podNamed, stop } = await setUp({
    nodes: [node('n')],
    pods: [{ ...guarded, metadata: { ...guarded.metadata, labels: { app: 'web' } } }],
    classes: [priorityClass('low', 1), priorityClass('high', 5)],
  });
  await backend.set(PODS, pod('free', { nodeName: 'n', priorityClassName: 'low' }, '400m'));
  await backend.set(POD_DISRUPTION_BUDGETS, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'a' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
  } as PodDisruptionBudget);
  await backend.set(PODS, pod('high', { priorityClassName: 'high' }, '600m'));
  await until(() => podNamed('free')?.metadata.deletionTimestamp !== undefined);
  expect(podNamed('guarded')?.metadata.deletionTimestamp).toBeUndefined();
  stop.abort();
});

test('a failed binding is retried after a delay, except after a conflict', async () => {
  const { backend, timers, until, nodeOf, stop } = await setUp({ nodes: [node('n')] });
  backend.failNext('create pods/binding a/x', serviceUnavailable('not now'));
  await backend.set(PODS, pod('x'));
  const tries = (name: string) => backend.calls.filter((call) => call === `create pods/binding a/${name}`).length;
  while (tries('x') < 1) await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(nodeOf('x')).toBeUndefined();
  timers.advance(1000);
  await until(() => nodeOf('x') === 'n');

  backend.failNext('create pods/binding a/y', conflict(PODS, 'y', 'pod y is already assigned to node "m"'));
  await backend.set(PODS, pod('y'));
  while (tries('y') < 1) await new Promise(setImmediate);
  timers.advance(100_000);
  await new Promise(setImmediate);
  expect(tries('y')).toBe(1);
  stop.abort();
});

test('a claim that is being bound causes no FailedScheduling, although its volume is not visible yet', async () => {
  const accessModes = ['ReadWriteOnce'];
  const claim: PersistentVolumeClaim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'c', namespace: 'a', annotations: { [BIND_COMPLETED]: 'yes' } },
    spec: { volumeName: 'v', storageClassName: '', accessModes, resources: { requests: { storage: '1Gi' } } },
  };
  const volume: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'v' },
    spec: { capacity: { storage: '1Gi' }, accessModes, hostPath: { path: '/v' } },
  };
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [node('n')] });
  await backend.set(PERSISTENT_VOLUME_CLAIMS, claim);
  await backend.set(PODS, pod('x', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }] }));
  await backend.set(PODS, pod('y'));
  await until(() => nodeOf('y') === 'n');
  await backend.set(PERSISTENT_VOLUMES, volume);
  await backend.setStatus(PERSISTENT_VOLUME_CLAIMS, 'a', 'c', { phase: 'Bound' });
  await until(() => nodeOf('x') === 'n' && events().length === 2);
  expect(events().filter((event) => event.startsWith('Warning'))).toEqual([]);

  await backend.setStatus(PERSISTENT_VOLUME_CLAIMS, 'a', 'c', { phase: 'Lost' });
  await backend.set(PODS, pod('z', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }] }));
  await until(() => events().some((event) => event.includes('bound to non-existent persistentvolume')));
  stop.abort();
});
