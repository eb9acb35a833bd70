import { expect, test, vi } from 'vitest';
import type { CoreV1Event, Node, Pod, Toleration } from '../../api/generated/types.ts';
import { EVENTS, NODES, PODS } from '../../api/resources.ts';
import { notFound, objectModified, serviceUnavailable } from '../../machinery/status.ts';
import { backend, controllerOptions, settled, stopControllers, timers, useRegistry } from '../controller-fixture.ts';
import { startTaintEviction } from './taint-eviction.ts';

const node = (...effects: string[]): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  spec: { taints: effects.map((effect) => ({ key: 'maintenance', effect })) },
});
const tolerating = (tolerationSeconds?: number): Toleration[] => [
  { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds },
];
const pod = (name: string, tolerations: Toleration[] = [], more: Partial<Pod> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  spec: { nodeName: 'n', containers: [{ name: 'app', image: 'x' }], tolerations },
  ...more,
  metadata: { name, namespace: 'a', ...more.metadata },
});

useRegistry();

const start = async (): Promise<void> => {
  await startTaintEviction(controllerOptions());
  for (const ref of ['nodes', 'pods']) await vi.waitFor(() => expect(backend.calls).toContain(`watch ${ref} /`));
};
const deleted = (): string[] =>
  (backend.objects(PODS) as Pod[])
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    .map(({ metadata }) => metadata.name);
const events = (): string[] => (backend.objects(EVENTS) as CoreV1Event[]).map(({ message = '' }) => message);

test('Pods that do not tolerate the taint are deleted immediately or after tolerationSeconds, with a condition and an Event', async () => {
  for (const each of [
    pod('plain'),
    pod('patient', tolerating(60)),
    pod('tolerant', tolerating()),
    pod('over', [], { status: { phase: 'Succeeded' } }),
    pod('elsewhere', [], { spec: { nodeName: 'm', containers: [{ name: 'app', image: 'x' }] } }),
  ])
    await backend.set(PODS, each);
  await backend.set(NODES, node('NoSchedule'));
  await start();
  await settled();
  expect(deleted()).toEqual([]);

  await backend.set(NODES, node('NoExecute'));
  await settled();
  expect(deleted()).toEqual(['plain']);
  const { status } = (backend.objects(PODS) as Pod[]).find(({ metadata }) => metadata.name === 'plain') as Pod;
  expect(status?.conditions).toEqual([
    {
      type: 'DisruptionTarget',
      status: 'True',
      lastTransitionTime: '2026-01-31T00:00:00Z',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
    },
  ]);
  timers.advance(59_999);
  await backend.setStatus(PODS, 'a', 'patient', { phase: 'Running' });
  await settled();
  expect(deleted()).toEqual(['plain']);
  timers.advance(1);
  await settled();
  expect(deleted()).toEqual(['patient', 'plain']);
  await vi.waitFor(() =>
    expect(events()).toEqual(['Marking for deletion Pod a/patient', 'Marking for deletion Pod a/plain']),
  );
});

test('a completed Pod whose defer containers are running is deleted', async () => {
  const termination = { reason: 'Completed', startedAt: '2026-01-31T00:00:00Z', deadline: '2026-01-31T00:00:30Z' };
  await backend.set(PODS, pod('exits', [], { status: { phase: 'Terminating', termination } }));
  await backend.set(NODES, node('NoExecute'));
  await start();
  await settled();
  expect(deleted()).toEqual(['exits']);
});

test('removing the taint in time cancels the deletion; tolerationSeconds count again from the next taint', async () => {
  await backend.set(PODS, pod('patient', tolerating(60)));
  await backend.set(NODES, node('NoExecute'));
  await start();
  timers.advance(59_000);
  await backend.set(NODES, node());
  await settled();
  timers.advance(59_000);
  await backend.set(NODES, node('NoExecute'));
  timers.advance(59_000);
  await settled();
  expect(deleted()).toEqual([]);
  expect(events()).toEqual(['Cancelling deletion of Pod a/patient']);
  timers.advance(1000);
  await settled();
  expect(deleted()).toEqual(['patient']);
});

test.each<[string, number[], string[], number]>([
  ['each taint counts from its own addition', [60, 30], ['first', 'both'], 60],
  ['a shorter toleration of a later taint ends the stay earlier', [90, 30], ['first', 'both'], 80],
  ['a taint that another replaces does not count', [60, 90], ['first', 'second'], 140],
  ['a taint that is removed does not count', [90, 30], ['first', 'both', 'first'], 90],
])('two taints, 50 s apart: %s', async (_, [first, second], states, evictedAfter) => {
  const waits = ['first', 'second'].map((key, index) => ({
    key,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: [first, second][index],
  }));
  await backend.set(PODS, pod('patient', waits));
  const startedAt = timers.now();
  const taint = async (state: string): Promise<void> => {
    const keys = state === 'both' ? ['first', 'second'] : [state];
    await backend.set(NODES, { ...node(), spec: { taints: keys.map((key) => ({ key, effect: 'NoExecute' })) } });
    await settled();
  };
  const [begin = '', then = '', last] = states;
  await taint(begin);
  await start();
  timers.advance(50_000);
  await settled();
  await taint(then);
  timers.advance(5_000);
  await settled();
  if (last !== undefined) await taint(last);
  timers.advance(evictedAfter * 1000 - 1 - (timers.now() - startedAt));
  await settled();
  expect(deleted()).toEqual([]);
  timers.advance(1);
  await settled();
  expect(deleted()).toEqual(['patient']);
});

test('a node that becomes unreachable after it was not ready does not start the tolerationSeconds again', async () => {
  const keys = ['not-ready', 'unreachable'].map((name) => `node.kubernetes.io/${name}`);
  const waits = keys.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }));
  await backend.set(PODS, pod('patient', waits));
  await backend.set(NODES, node());
  await start();
  for (const key of keys) {
    const taints = [{ key, effect: 'NoExecute', timeAdded: new Date(timers.now()).toISOString() }];
    await backend.set(NODES, { ...node(), spec: { taints } });
    await settled();
    expect(deleted()).toEqual([]);
    timers.advance(30_000);
    await settled();
  }
  expect(deleted()).toEqual(['patient']);
});

const NOT_READY = 'node.kubernetes.io/not-ready';
test('a not-ready taint from before the start evicts no Pod; a later taint does', async () => {
  const notReady = (timeAdded: string): Node => ({
    ...node(),
    spec: { taints: [{ key: NOT_READY, effect: 'NoExecute', timeAdded }] },
  });
  await backend.set(
    PODS,
    pod('plain', [{ key: NOT_READY, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }]),
  );
  await backend.set(NODES, notReady('2026-01-30T23:59:00Z'));
  await start();
  await settled();
  expect(deleted()).toEqual([]);
  await backend.set(NODES, notReady('2026-01-31T00:00:30Z'));
  await settled();
  expect(deleted()).toEqual(['plain']);
});

test('a not-ready taint from before the start counts from a minute after the start, or after a suspension', async () => {
  const taints = [{ key: NOT_READY, effect: 'NoExecute', timeAdded: '2026-01-30T23:59:00Z' }];
  const waits = { key: NOT_READY, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 };
  await backend.set(PODS, pod('waits', [waits]));
  await backend.set(NODES, { ...node(), spec: { taints } });
  await start();
  timers.suspend(3_600_000);
  timers.advance(89_999);
  await settled();
  expect(deleted()).toEqual([]);
  timers.advance(1);
  await settled();
  expect(deleted()).toEqual(['waits']);
});

const marked = (reason: string): Pod =>
  pod('marked', [], {
    status: { phase: 'Running', conditions: [{ type: 'DisruptionTarget', status: 'True', reason }] },
  });
const mark = (): string | undefined => (backend.objects(PODS)[0] as Pod).status?.conditions?.[0]?.status;

test.each([
  ['DeletionByTaintManager', 'n', 'False'],
  ['EvictionByEvictionAPI', 'n', 'True'],
  ['DeletionByTaintManager', 'missing', 'True'],
])(
  'after a start, the mark %s of a Pod of the node %s that no taint evicts has the status %s',
  async (reason, name, to) => {
    await backend.set(PODS, marked(reason));
    const { metadata, ...rest } = node();
    await backend.set(NODES, { ...rest, metadata: { ...metadata, name } });
    await start();
    await settled();
    expect([mark(), deleted()]).toEqual([to, []]);
  },
);

test('a Pod whose deletion failed loses its mark if the taint is removed before the next attempt', async () => {
  await backend.set(PODS, pod('plain'));
  await backend.set(NODES, node('NoExecute'));
  backend.failNext('delete pods', serviceUnavailable('not now'));
  await start();
  await settled();
  expect(mark()).toBe('True');
  await backend.set(NODES, node());
  await settled();
  timers.advance(60_000);
  await settled();
  expect([mark(), deleted()]).toEqual(['False', []]);
});

test('a failed deletion is retried; mirror Pods are not deleted', async () => {
  const mirror = { metadata: { name: 'mirror', annotations: { 'kubernetes.io/config.mirror': 'x' } } };
  await backend.set(PODS, pod('plain'));
  await backend.set(PODS, pod('mirror', [], mirror));
  await backend.set(NODES, node('NoExecute'));
  backend.failNext('delete pods', serviceUnavailable('not now'));
  await start();
  await settled();
  expect(deleted()).toEqual([]);
  timers.advance(5_000);
  await settled();
  expect(deleted()).toEqual(['plain']);
});

test('tolerationSeconds that passed during a suspension of the machine are extended by a minute after the wake-up', async () => {
  await backend.set(PODS, pod('patient', tolerating(300)));
  await backend.set(NODES, node('NoExecute'));
  await start();
  await settled();
  timers.suspend(3_600_000);
  await backend.setStatus(PODS, 'a', 'patient', { phase: 'Running' });
  await settled();
  timers.advance(59_999);
  await settled();
  expect(deleted()).toEqual([]);
  timers.advance(1);
  await settled();
  expect(deleted()).toEqual(['patient']);
});

test('a Pod that ends before its tolerationSeconds pass is not deleted, and no Event reports that', async () => {
  await backend.set(PODS, pod('patient', tolerating(60)));
  await backend.set(NODES, node('NoExecute'));
  await start();
  await backend.setStatus(PODS, 'a', 'patient', { phase: 'Succeeded' });
  await settled();
  timers.advance(60_000);
  await settled();
  expect([deleted(), events()]).toEqual([[], []]);
});

test.each([
  ['no longer exists', notFound(PODS, 'plain')],
  ['was replaced', objectModified(PODS, 'plain')],
])('the eviction of a Pod that %s is not repeated', async (_, error) => {
  await backend.set(PODS, pod('plain'));
  await backend.set(NODES, node('NoExecute'));
  backend.failNext('patch pods/status', error);
  await start();
  await settled();
  timers.advance(60_000);
  await settled();
  expect([backend.calls.filter((call) => call.startsWith('patch pods')).length, deleted()]).toEqual([1, []]);
});

test('a stopped controller deletes no Pod whose tolerationSeconds pass later', async () => {
  await backend.set(PODS, pod('patient', tolerating(60)));
  await backend.set(NODES, node('NoExecute'));
  await start();
  await settled();
  stopControllers();
  timers.advance(60_000);
  await settled();
  expect(deleted()).toEqual([]);
});
