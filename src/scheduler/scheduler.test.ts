import { expect, test } from 'vitest';
import type { CoreV1Event, Node, Pod } from '../api/generated/types.ts';
import { EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from '../api/resources.ts';
import { memoryBackend, silentLog, testTimers } from '../client/testing.ts';
import { inProcessClient } from '../client/typed-client.ts';
import { conflict, serviceUnavailable } from '../machinery/status.ts';
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
const pod = (name: string, spec: object = {}, cpu = '100m'): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a' },
    spec: {
      schedulerName: 'default-scheduler',
      containers: [{ name: 'app', resources: { requests: { cpu } } }],
      ...spec,
    },
    status: { phase: 'Pending' },
  }) as unknown as Pod;

async function setUp(objects: { nodes?: Node[]; pods?: Pod[] } = {}) {
  const backend = memoryBackend();
  const timers = testTimers();
  const stop = new AbortController();
  for (const each of objects.nodes ?? []) backend.set(NODES, each);
  for (const each of objects.pods ?? []) backend.set(PODS, each);
  const client = inProcessClient(backend);
  let wake = (): void => {};
  for (const ref of [PODS, EVENTS]) {
    void backend.watch(ref, { resourceVersion: '0' }, (_: WatchEvent) => wake(), stop.signal);
  }
  /** Resolves once the condition holds; it is checked after each change of a Pod or an Event. */
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const nodeOf = (name: string): string | undefined =>
    (backend.objects(PODS) as Pod[]).find((each) => each.metadata.name === name)?.spec?.nodeName;
  const events = () =>
    (backend.objects(EVENTS) as CoreV1Event[]).map(({ type, reason, message }) => `${type} ${reason} ${message}`);
  await startScheduler({ client, timers, log: silentLog, schedulerName: 'default-scheduler', signal: stop.signal });
  // startScheduler() resolves after the first lists; the watches start later: 5 of informers, 2 of this test.
  while (backend.calls.filter((call) => call.startsWith('watch')).length < 7) await new Promise(setImmediate);
  return { backend, timers, stop, until, nodeOf, events };
}

test('binds existing and new Pods at once, with an Event', async () => {
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [node('n')], pods: [pod('x')] });
  await until(() => nodeOf('x') === 'n');
  backend.set(PODS, pod('y'));
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

test('ignores Pods that are bound, terminating, gated, or for another scheduler', async () => {
  const deleting = pod('deleting');
  deleting.metadata.deletionTimestamp = '2026-01-31T00:00:00Z';
  const pods = [
    pod('bound', { nodeName: 'elsewhere' }),
    deleting,
    pod('gated', { schedulingGates: [{ name: 'wait' }] }),
    pod('foreign', { schedulerName: 'mine' }),
    { ...pod('ended'), status: { phase: 'Failed' } } as Pod,
  ];
  const { backend, until, nodeOf, stop } = await setUp({ nodes: [node('n')], pods });
  backend.set(PODS, pod('ours'));
  await until(() => nodeOf('ours') === 'n');
  expect(backend.calls.filter((call) => call.includes('/binding'))).toEqual(['create pods/binding a/ours']);
  backend.set(PODS, pod('gated'));
  await until(() => nodeOf('gated') === 'n');
  stop.abort();
});

test('resources of an assumed Pod are not allocated again before the API shows the binding', async () => {
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [node('n')] });
  backend.set(PODS, pod('x', {}, '600m'));
  backend.set(PODS, pod('y', {}, '600m'));
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
  backend.set(NODES, node('n', { spec: { unschedulable: true } }));
  await until(() => condition()?.message?.includes('unschedulable') === true);
  expect(condition()?.lastTransitionTime).toBe(since);
  backend.set(NODES, node('n'));
  await until(() => nodeOf('x') === 'n');

  backend.set(PODS, pod('y', {}, '600m'));
  await until(() => events().some((event) => event.includes('Insufficient')));
  backend.set(PODS, { ...(backend.objects(PODS)[0] as Pod), status: { phase: 'Succeeded' } } as Pod);
  await until(() => nodeOf('y') === 'n');
  backend.set(PODS, pod('z', {}, '600m'));
  await until(() => events().filter((event) => event.includes('FailedScheduling')).length === 4);
  backend.remove(PODS, 'a', 'y');
  await until(() => nodeOf('z') === 'n');
  stop.abort();
});

test('no Pod is bound to a node that is not ready, even before the taint; it is once the node is ready', async () => {
  const ready = (status: string): Node => node('n', { status: { conditions: [{ type: 'Ready', status }] } });
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [ready('False')], pods: [pod('x')] });
  await until(() => events().length === 1);
  expect(events()).toEqual([
    'Warning FailedScheduling 0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.',
  ]);
  backend.set(NODES, ready('True'));
  await until(() => nodeOf('x') === 'n');
  stop.abort();
});

test('the heartbeat of a node causes no retry', async () => {
  const full = node('n', { spec: { unschedulable: true } });
  const { backend, until, events, stop } = await setUp({ nodes: [full], pods: [pod('x')] });
  await until(() => events().length === 1);
  const heartbeat = { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-31T00:00:00Z' };
  const changed = node('n', { spec: { unschedulable: true }, status: { conditions: [heartbeat] } });
  backend.set(NODES, changed);
  await until(() => events().length === 1 && (backend.objects(EVENTS)[0] as CoreV1Event).count === 2);
  const again = { ...heartbeat, lastHeartbeatTime: '2026-01-31T00:00:10Z' };
  backend.set(NODES, node('n', { spec: { unschedulable: true }, status: { conditions: [again] } }));
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  expect((backend.objects(EVENTS)[0] as CoreV1Event).count).toBe(2);
  stop.abort();
});

test('Pods of higher priority are scheduled first, at the start and after resources become free', async () => {
  const pods = [pod('low', {}, '600m'), pod('high', { priority: 5 }, '600m'), pod('middle', { priority: 3 }, '600m')];
  const never = { preemptionPolicy: 'Never' };
  for (const each of pods) Object.assign(each.spec as object, never);
  const { backend, until, nodeOf, stop } = await setUp({ nodes: [node('n')], pods });
  await until(() => nodeOf('high') === 'n');
  backend.remove(PODS, 'a', 'high');
  await until(() => nodeOf('middle') === 'n');
  expect(nodeOf('low')).toBeUndefined();
  stop.abort();
});

test('Pods of lower priority are preempted, and the freed resources go to the preempting Pod', async () => {
  const stays = { finalizers: ['it ends gracefully'] };
  const low = pod('low', { nodeName: 'n' }, '900m');
  low.metadata = { ...low.metadata, ...stays };
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [node('n')], pods: [low] });
  backend.set(PODS, pod('high', { priority: 5 }, '600m'));
  const at = (name: string) => (backend.objects(PODS) as Pod[]).find(({ metadata }) => metadata.name === name);
  await until(() => events().length === 2);
  const uid = at('high')?.metadata.uid;
  expect(events()).toEqual([
    'Warning FailedScheduling 0/1 nodes are available: 1 Insufficient cpu.',
    `Normal Preempted Preempted by pod ${uid} on node n`,
  ]);
  expect(at('low')?.metadata.deletionTimestamp).toBeDefined();
  expect(at('low')?.status?.conditions).toMatchObject([
    {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: 'default-scheduler: preempting to accommodate a higher priority pod',
    },
  ]);
  expect(at('high')?.status?.nominatedNodeName).toBe('n');

  backend.set(PODS, pod('late', {}, '600m'));
  backend.remove(PODS, 'a', 'low');
  await until(() => nodeOf('high') === 'n' && events().length === 4);
  expect(nodeOf('late')).toBeUndefined();
  expect(events().filter((event) => event.includes('Preempted'))).toHaveLength(1);
  stop.abort();
});

test('a failed binding is retried after a pause, except after a conflict', async () => {
  const { backend, timers, until, nodeOf, stop } = await setUp({ nodes: [node('n')] });
  backend.failNext('create pods/binding a/x', serviceUnavailable('not now'));
  backend.set(PODS, pod('x'));
  const tries = (name: string) => backend.calls.filter((call) => call === `create pods/binding a/${name}`).length;
  while (tries('x') < 1) await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(nodeOf('x')).toBeUndefined();
  timers.advance(1000);
  await until(() => nodeOf('x') === 'n');

  backend.failNext('create pods/binding a/y', conflict(PODS, 'y', 'pod y is already assigned to node "m"'));
  backend.set(PODS, pod('y'));
  while (tries('y') < 1) await new Promise(setImmediate);
  timers.advance(100_000);
  await new Promise(setImmediate);
  expect(tries('y')).toBe(1);
  stop.abort();
});

test('a claim that is being bound causes no FailedScheduling, although its volume is not visible yet', async () => {
  const metadata = { name: 'c', namespace: 'a', annotations: { [BIND_COMPLETED]: 'yes' } };
  const claim = (phase: string) =>
    ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata,
      spec: { volumeName: 'v' },
      status: { phase },
    }) as never;
  const { backend, until, nodeOf, events, stop } = await setUp({ nodes: [node('n')] });
  backend.set(PERSISTENT_VOLUME_CLAIMS, claim('Pending'));
  backend.set(PODS, pod('x', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }] }));
  backend.set(PODS, pod('y'));
  await until(() => nodeOf('y') === 'n');
  backend.set(PERSISTENT_VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'v' },
    spec: {},
  } as never);
  backend.set(PERSISTENT_VOLUME_CLAIMS, claim('Bound'));
  await until(() => nodeOf('x') === 'n' && events().length === 2);
  expect(events().filter((event) => event.startsWith('Warning'))).toEqual([]);

  backend.set(PERSISTENT_VOLUME_CLAIMS, claim('Lost'));
  backend.set(PODS, pod('z', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }] }));
  await until(() => events().some((event) => event.includes('bound to non-existent persistentvolume')));
  stop.abort();
});
