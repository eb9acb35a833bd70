import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { notFound, objectModified, serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { startPodGc } from './pod-gc.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
let stop: AbortController;
let errors: number;
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  stop = new AbortController();
  errors = 0;
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } });
});
afterEach(() => stop.abort());

const put = async (
  name: string,
  status: object,
  annotations = {},
  nodeName = 'n',
  finalizers: string[] = [],
): Promise<void> => {
  const spec = { ...(nodeName && { nodeName }), containers: [{ name: 'app', image: 'x' }] };
  const metadata = { name, namespace: 'a', annotations, finalizers };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec, status });
};
const ended = (name: string, annotations = {}) => put(name, { phase: 'Succeeded' }, annotations);
const names = (): string[] => backend.objects(PODS).map(({ metadata }) => metadata.name);
const deleting = (): string[] =>
  backend.objects(PODS).flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [] : metadata.name));
const statusOf = (name: string): Pod['status'] => {
  const pod = backend.objects(PODS).find(({ metadata }) => metadata.name === name) as Pod | undefined;
  const { phase, conditions } = pod?.status ?? {};
  return { phase, ...(conditions && { conditions }) };
};
const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
};
const start = async (terminatedPods?: number): Promise<void> => {
  const log = { ...silentLog, warn: () => void errors++ };
  await startPodGc(withInformers({ client: clientOf(backend), timers, log, signal: stop.signal, terminatedPods }));
  for (const ref of ['nodes', 'pods']) await vi.waitFor(() => expect(backend.calls).toContain(`watch ${ref} /`));
};

test('among terminated Pods of the same age, those whose names sort first are deleted', async () => {
  for (const name of ['c', 'a', 'd', 'b']) await ended(name);
  await start(2);
  await vi.waitFor(() => expect(names()).toEqual(['c', 'd']));
});

test('all terminated Pods are kept if the limit is 0, and by default many', async () => {
  for (const name of ['a', 'b']) await ended(name);
  await start(0);
  await settled();
  stop.abort();
  stop = new AbortController();
  await start();
  await settled();
  expect(names()).toEqual(['a', 'b']);
});

test('mirror Pods and Pods that run do not count as terminated', async () => {
  await ended('mirror', { [MIRROR_ANNOTATION]: 'static' });
  await put('runs', { phase: 'Running' });
  await ended('a');
  await start(1);
  await settled();
  expect(names()).toEqual(['a', 'mirror', 'runs']);
  await ended('b');
  await vi.waitFor(() => expect(names()).toEqual(['b', 'mirror', 'runs']));
  await backend.remove(PODS, 'a', 'b');
  await settled();
  await ended('c');
  await settled();
  expect(names()).toEqual(['c', 'mirror', 'runs']);
});

test.each([
  ['is unavailable', serviceUnavailable('not now'), 1],
  ['no longer finds the Pod', notFound(PODS, 'a'), 0],
  ['has another Pod of the same name', objectModified(PODS, 'a'), 0],
])(
  'a failed write is repeated if the API is unavailable, and not for other causes: the API %s',
  async (_, error, count) => {
    await put('a', { phase: 'Running' }, {}, 'gone');
    backend.failNext('patch pods/status', error);
    await start();
    timers.advance(40_000);
    await settled();
    expect([names(), errors]).toEqual([['a'], count]);
    timers.advance(60_000);
    await settled();
    expect(names()).toEqual(count === 0 ? ['a'] : []);
  },
);

test('a stopped controller deletes no Pod of a missing node', async () => {
  await put('a', { phase: 'Running' }, {}, 'gone');
  await start();
  stop.abort();
  timers.advance(40_000);
  await settled();
  expect(backend.calls.filter((call) => call.startsWith('delete'))).toEqual([]);
});

test('the Pods of a node that has been missing for 40 s fail with a condition before they are deleted', async () => {
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'leaving' } });
  await put('runs', { phase: 'Running' }, {}, 'leaving', ['example.com/keep']);
  await put('done', { phase: 'Succeeded' }, {}, 'leaving', ['example.com/keep']);
  await put('other', { phase: 'Running' });
  await start();
  await backend.remove(NODES, undefined, 'leaving');
  await settled();
  timers.advance(39_999);
  await settled();
  expect(deleting()).toEqual([]);
  timers.advance(1);
  await settled();
  expect(deleting()).toEqual(['done', 'runs']);
  expect(statusOf('done')).toEqual({ phase: 'Succeeded' });
  expect(statusOf('runs')).toMatchObject({
    phase: 'Failed',
    conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC' }],
  });
  const writes = backend.calls.filter((call) => /^(patch|delete) pods/.test(call));
  expect(writes).toEqual(['delete pods a/done', 'patch pods/status a/runs', 'delete pods a/runs']);
  timers.advance(120_000);
  await settled();
  expect(backend.calls.filter((call) => /^(patch|delete) pods/.test(call))).toEqual(writes);
});

test('a node that returns within 40 s keeps its Pods', async () => {
  await put('a', { phase: 'Running' }, {}, 'm');
  await start();
  timers.advance(39_999);
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'm' } });
  await settled();
  timers.advance(1);
  await settled();
  expect([names(), errors]).toEqual([['a'], 0]);
});

test('the 40 s of a node that returns and is removed again count from the second removal', async () => {
  await put('a', { phase: 'Running' }, {}, 'm');
  await start();
  timers.advance(30_000);
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'm' } });
  await settled();
  await backend.remove(NODES, undefined, 'm');
  await settled();
  timers.advance(39_999);
  await settled();
  expect(names()).toEqual(['a']);
  timers.advance(1);
  await settled();
  expect(names()).toEqual([]);
});

test('the Pods of a node that the copy lacks but the API has remain', async () => {
  await put('a', { phase: 'Running' }, {}, 'm');
  const { watch } = backend;
  const withoutEvents: typeof watch = (ref, options, sink, signal) =>
    watch(ref, options, ref.resource === 'nodes' ? () => undefined : sink, signal);
  backend.watch = withoutEvents;
  await start();
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'm' } });
  timers.advance(40_000);
  await settled();
  expect(names()).toEqual(['a']);
  expect(backend.calls).toContain('get nodes /m');
});

test('a Pod without a node that is being deleted fails, although its finalizer keeps it', async () => {
  await put('a', { phase: 'Pending' }, {}, '', ['example.com/keep']);
  await start();
  await backend.remove(PODS, 'a', 'a');
  await settled();
  expect(statusOf('a')).toEqual({ phase: 'Failed' });
});

test.each<[string, Node, boolean]>([
  ['is not ready and out of service', taintedNode('False', 'node.kubernetes.io/out-of-service'), true],
  ['is unreachable and out of service', taintedNode('Unknown', 'node.kubernetes.io/out-of-service'), true],
  ['is out of service but ready', taintedNode('True', 'node.kubernetes.io/out-of-service'), false],
  ['is unreachable', taintedNode('Unknown', 'node.kubernetes.io/unreachable'), false],
])('whether a Pod that is being deleted is removed by force if its node %s', async (_, node, isForced) => {
  await backend.set(NODES, node);
  await put('stays', { phase: 'Running' }, {}, 'm');
  for (const name of ['before', 'after']) await put(name, { phase: 'Running' }, {}, 'm');
  const remove = (name: string) => clientOf(backend).resource<Pod>(PODS).delete(name, 'a', { gracePeriodSeconds: 30 });
  await remove('before');
  await start();
  await remove('after');
  await settled();
  expect(names()).toEqual(isForced ? ['stays'] : ['after', 'before', 'stays']);
});

test('the taint of a node whose Pods are already being deleted forces their deletion', async () => {
  await backend.set(NODES, taintedNode('Unknown', 'node.kubernetes.io/unreachable'));
  await put('a', { phase: 'Running' }, {}, 'm', ['example.com/keep']);
  await clientOf(backend).resource<Pod>(PODS).delete('a', 'a', { gracePeriodSeconds: 30 });
  await start();
  await settled();
  expect(statusOf('a')).toEqual({ phase: 'Running' });
  await backend.set(NODES, taintedNode('Unknown', 'node.kubernetes.io/out-of-service'));
  await settled();
  expect(statusOf('a')).toEqual({ phase: 'Failed' });
  expect((backend.objects(PODS)[0] as Pod).metadata.deletionGracePeriodSeconds).toBe(0);
});

function taintedNode(ready: string, key: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'm' },
    spec: { taints: [{ key, effect: 'NoSchedule' }] },
    status: { conditions: [{ type: 'Ready', status: ready }] },
  };
}
