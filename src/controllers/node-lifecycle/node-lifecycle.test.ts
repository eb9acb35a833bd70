import { afterEach, expect, test, vi } from 'vitest';
import type { CoreV1Event, Lease, Node, Pod } from '../../api/generated/types.ts';
import { EVENTS, LEASES, NODES, PODS } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { formatMicroTime, formatTime } from '../../machinery/time.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { SUSPENDED_MILLIS } from '../controller.ts';
import { CONFIRM_MILLIS, GRACE_MILLIS, startNodeLifecycle } from './node-lifecycle.ts';
import { notReadyCondition, unknownConditions } from './unknown-state.ts';

const NOW = Date.UTC(2026, 0, 31);
let stop = new AbortController();
afterEach(() => stop.abort());

const TYPES = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];
const node = (conditions: NonNullable<Node['status']>['conditions']): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', creationTimestamp: '2026-01-30T00:00:00Z' },
  status: { conditions },
});
const reported = (status = 'True', types = TYPES): Node =>
  node(
    types.map((type) => ({ type, status: type === 'Ready' ? status : 'False', lastHeartbeatTime: formatTime(NOW) })),
  );

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a' },
  spec: { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
};

test.each<[string, Node, Record<string, string>]>([
  ['a node that reported', reported(), Object.fromEntries(TYPES.map((type) => [type, 'NodeStatusUnknown']))],
  ['a node that never reported', node([]), Object.fromEntries(TYPES.map((type) => [type, 'NodeStatusNeverUpdated']))],
  [
    'a node that was not ready',
    reported('False', ['Ready']),
    {
      Ready: 'NodeStatusUnknown',
      MemoryPressure: 'NodeStatusNeverUpdated',
      DiskPressure: 'NodeStatusNeverUpdated',
      PIDPressure: 'NodeStatusNeverUpdated',
    },
  ],
  ['a node that is Unknown already', node(TYPES.map((type) => ({ type, status: 'Unknown' }))), {}],
])('the conditions to write for %s', (_, given, reasons) => {
  const conditions = unknownConditions(given, NOW);
  expect(Object.fromEntries(conditions.map(({ type, reason }) => [type, reason]))).toEqual(reasons);
  for (const condition of conditions)
    expect(condition).toMatchObject({ status: 'Unknown', lastTransitionTime: '2026-01-31T00:00:00Z' });
});

test('only a Pod that is Ready gets a new Ready condition', () => {
  expect(notReadyCondition(pod, NOW)).toEqual({
    type: 'Ready',
    status: 'False',
    lastTransitionTime: '2026-01-31T00:00:00Z',
  });
  expect(
    notReadyCondition({ ...pod, status: { conditions: [{ type: 'Ready', status: 'False' }] } }, NOW),
  ).toBeUndefined();
});

async function setUp() {
  stop = new AbortController();
  const timers = createVirtualTimers(NOW);
  const backend = await registryBackend({ timers });
  const client = clientOf(backend);
  await backend.set(NODES, reported());
  await backend.set<Lease>(LEASES, lease(NOW));
  await backend.set(PODS, pod);
  await startNodeLifecycle(withInformers({ client, timers, log: silentLog, signal: stop.signal }));
  const readyOf = (object: Node | Pod) => object.status?.conditions?.find(({ type }) => type === 'Ready');
  const settled = async (): Promise<void> => {
    for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  };
  const ready = () => readyOf(backend.objects(NODES)[0] as Node);
  return {
    timers,
    backend,
    settled,
    ready,
    podReady: () => readyOf(backend.objects(PODS)[0] as Pod)?.status,
    renew: () => backend.set<Lease>(LEASES, lease(timers.now())),
    /** Expects that the node becomes Unknown after exactly this time. */
    async becomesUnknownAfter(millis: number): Promise<void> {
      timers.advance(millis - 1);
      await settled();
      expect(ready()?.status).toBe('True');
      timers.advance(1);
      await vi.waitFor(() => expect(ready()?.status).toBe('Unknown'));
    },
  };
}

const lease = (renewed: number): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'n', namespace: 'kube-node-lease' },
  spec: { holderIdentity: 'n', renewTime: formatMicroTime(renewed) },
});

test('a node whose Lease is not renewed for 50 s is Unknown, and its Pods are not Ready', async () => {
  const { timers, backend, settled, ready, podReady, becomesUnknownAfter } = await setUp();
  await becomesUnknownAfter(GRACE_MILLIS);
  await settled();
  timers.advance(CONFIRM_MILLIS - 1);
  await settled();
  expect(podReady()).toBe('True');
  timers.advance(1);
  await vi.waitFor(() => expect(podReady()).toBe('False'));
  expect(ready()).toMatchObject({
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
    lastTransitionTime: formatTime(NOW + GRACE_MILLIS),
  });
  await vi.waitFor(() => expect(backend.objects(EVENTS)).toHaveLength(2));
  const events = backend.objects(EVENTS) as CoreV1Event[];
  expect(events.map(({ type, reason, message }) => `${type} ${reason} ${message}`).sort()).toEqual([
    'Normal NodeNotReady Node n status is now: NodeNotReady',
    'Warning NodeNotReady Node is not ready',
  ]);
});

test.each(['Lease', 'status'])('after a sign of life in the %s, the agent has the whole time again', async (where) => {
  const { timers, backend, settled, renew, becomesUnknownAfter } = await setUp();
  timers.advance(40_000);
  if (where === 'Lease') await renew();
  else {
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: formatTime(timers.now()) }];
    await backend.setStatus(NODES, undefined, 'n', { conditions });
  }
  await settled();
  timers.advance(10_000);
  await settled();
  await becomesUnknownAfter(GRACE_MILLIS - 10_000);
});

test('after a suspension of the machine, the agent has the whole time again', async () => {
  const { timers, settled, becomesUnknownAfter } = await setUp();
  timers.suspend(GRACE_MILLIS + SUSPENDED_MILLIS);
  await settled();
  await becomesUnknownAfter(GRACE_MILLIS);
});

test('the Pods of a node stay Ready if its agent gives a sign of life soon after the node is Unknown', async () => {
  const { timers, settled, ready, podReady, renew } = await setUp();
  timers.advance(GRACE_MILLIS);
  await vi.waitFor(() => expect(ready()?.status).toBe('Unknown'));
  await settled();
  timers.advance(CONFIRM_MILLIS - 1);
  await renew();
  await settled();
  timers.advance(1);
  await settled();
  expect(podReady()).toBe('True');
});

test('if the API takes no writes, the agent has the whole time again', async () => {
  const { timers, backend, settled, becomesUnknownAfter } = await setUp();
  backend.failNext('patch nodes/status', serviceUnavailable('the disk is full'));
  timers.advance(GRACE_MILLIS);
  await settled();
  await becomesUnknownAfter(GRACE_MILLIS);
});

test('a node that was deleted is not reported', async () => {
  const { timers, backend, settled } = await setUp();
  await backend.remove(NODES, undefined, 'n');
  await settled();
  backend.calls.length = 0;
  timers.advance(GRACE_MILLIS * 2);
  await settled();
  expect(backend.calls).toEqual([]);
});
