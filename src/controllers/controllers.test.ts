import { expect, test } from 'vitest';
import type { ConfigMap, CoreV1Event, Namespace } from '../api/generated/types.ts';
import { kinds } from '../api/kinds.ts';
import { CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS } from '../api/resources.ts';
import { memoryBackend, silentLog, testTimers } from '../client/testing.ts';
import { inProcessClient } from '../client/typed-client.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { forbidden, serviceUnavailable } from '../machinery/status.ts';
import { formatTime } from '../machinery/time.ts';
import type { ControllerOptions } from './controller.ts';
import { startEventsTtl } from './events-ttl/events-ttl.ts';
import { startNamespaceController } from './namespace/namespace.ts';
import { namespacedResources } from './namespace/namespaced-resources.ts';
import { startPodGc } from './pod-gc/pod-gc.ts';
import { startRootCaPublisher } from './root-ca/root-ca.ts';
import { startServiceAccountController } from './service-account/service-account.ts';

const object = (kind: string, name: string, namespace?: string, rest: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace },
  ...rest,
});
const namespace = (name: string, terminating = false): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, deletionTimestamp: terminating ? '2026-01-31T00:00:00Z' : undefined },
  spec: { finalizers: ['kubernetes'] },
  status: { phase: terminating ? 'Terminating' : 'Active' },
});

function setUp() {
  const backend = memoryBackend();
  const timers = testTimers();
  const stop = new AbortController();
  const options: ControllerOptions = { client: inProcessClient(backend), timers, log: silentLog, signal: stop.signal };
  let wake = (): void => {};
  /** Resolves once the condition holds; it is checked after each change of one of the resources. */
  const until = async (refs: ResourceRef[], holds: () => boolean): Promise<void> => {
    const end = new AbortController();
    for (const ref of refs) void backend.watch(ref, {}, () => wake(), end.signal);
    while (!holds()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    end.abort();
  };
  const called = async (text: string, count: number): Promise<void> => {
    while (backend.calls.filter((call) => call === text).length < count) await new Promise(setImmediate);
  };
  const names = (ref: ResourceRef): string[] =>
    backend.objects(ref).map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`);
  return { backend, timers, stop, options, until, called, names };
}

test('every active namespace gets its default ServiceAccount, also after a deletion', async () => {
  const { backend, stop, options, until, called, names } = setUp();
  for (const each of [namespace('a'), namespace('going', true)]) backend.set(NAMESPACES, each);
  await startServiceAccountController(options);
  expect(names(SERVICE_ACCOUNTS)).toEqual(['a/default']);
  for (const [ref, count] of [
    ['namespaces', 1],
    ['serviceaccounts', 1],
  ] as const)
    await called(`watch ${ref} /`, count);
  backend.set(NAMESPACES, namespace('b'));
  await until([SERVICE_ACCOUNTS], () => names(SERVICE_ACCOUNTS).length === 2);
  backend.remove(SERVICE_ACCOUNTS, 'a', 'default');
  await until([SERVICE_ACCOUNTS], () => names(SERVICE_ACCOUNTS).length === 2);
  expect(names(SERVICE_ACCOUNTS).sort()).toEqual(['a/default', 'b/default']);
  stop.abort();
});

test('a failed creation of a ServiceAccount is retried, except in a terminating namespace', async () => {
  const { backend, timers, stop, options, names, called } = setUp();
  for (const name of ['a', 'b']) backend.set(NAMESPACES, namespace(name));
  backend.failNext('create serviceaccounts a/', serviceUnavailable('not now'));
  backend.failNext('create serviceaccounts b/', forbidden(SERVICE_ACCOUNTS, 'default', 'it is being terminated'));
  await startServiceAccountController(options);
  expect(names(SERVICE_ACCOUNTS)).toEqual([]);
  timers.advance(100_000);
  await called('create serviceaccounts a/default', 2);
  expect(names(SERVICE_ACCOUNTS)).toEqual(['a/default']);
  stop.abort();
});

test('every active namespace gets the root certificate, and a changed one is corrected', async () => {
  const { backend, stop, options, until, called } = setUp();
  backend.set(NAMESPACES, namespace('a'));
  backend.set(NAMESPACES, namespace('old'));
  backend.set(CONFIG_MAPS, object('ConfigMap', 'kube-root-ca.crt', 'old', { data: { 'ca.crt': 'former' } }));
  await startRootCaPublisher({ ...options, caPem: 'PEM' });
  const data = () =>
    Object.fromEntries((backend.objects(CONFIG_MAPS) as ConfigMap[]).map((map) => [map.metadata.namespace, map.data]));
  expect(data()).toEqual({ old: { 'ca.crt': 'PEM' }, a: { 'ca.crt': 'PEM' } });
  await called('watch configmaps /', 1);
  backend.set(CONFIG_MAPS, object('ConfigMap', 'kube-root-ca.crt', 'a', { data: { 'ca.crt': 'PEM', more: 'x' } }));
  await until([CONFIG_MAPS], () => data()['a']?.['more'] === undefined);
  backend.remove(CONFIG_MAPS, 'a', 'kube-root-ca.crt');
  await until([CONFIG_MAPS], () => data()['a'] !== undefined);
  expect(data()['a']).toEqual({ 'ca.crt': 'PEM' });
  stop.abort();
});

test('the content of a terminating namespace is deleted, Pods first, then its finalizer', async () => {
  const { backend, stop, options, until, names } = setUp();
  await startNamespaceController({ ...options, resources: [PODS, CONFIG_MAPS] });
  backend.set(NAMESPACES, namespace('a'));
  const pod = object('Pod', 'x', 'a');
  backend.set(PODS, { ...pod, metadata: { ...pod.metadata, finalizers: ['it ends gracefully'] } });
  backend.set(PODS, object('Pod', 'other', 'b'));
  backend.set(CONFIG_MAPS, object('ConfigMap', 'm', 'a'));
  backend.set(NAMESPACES, namespace('a', true));
  const conditions = () => (backend.objects(NAMESPACES)[0] as Namespace).status?.conditions;
  await until([NAMESPACES], () => conditions() !== undefined);
  expect(conditions()).toMatchObject([
    {
      type: 'NamespaceContentRemaining',
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: 'Some resources are remaining: pods. has 1 resource instances',
    },
  ]);
  expect(names(CONFIG_MAPS)).toEqual(['a/m']);
  expect(backend.objects(PODS).find(({ metadata }) => metadata.name === 'x')?.metadata.deletionTimestamp).toBeDefined();

  backend.remove(PODS, 'a', 'x');
  await until([NAMESPACES], () => names(NAMESPACES).length === 0);
  expect([names(PODS), names(CONFIG_MAPS)]).toEqual([['b/other'], []]);
  stop.abort();
});

test('all namespaced resources are deleted with their namespace, Pods first, except Pod records', () => {
  const resources = namespacedResources(kinds).map(({ resource }) => resource);
  expect(resources[0]).toBe('pods');
  expect(resources).toContain('configmaps');
  expect(resources).not.toContain('podrecords');
});

test('a namespace that was terminating before the start is finished, and a failure is retried', async () => {
  const { backend, timers, stop, options, until, called, names } = setUp();
  backend.set(NAMESPACES, namespace('a', true));
  backend.set(CONFIG_MAPS, object('ConfigMap', 'm', 'a'));
  backend.failNext('deleteCollection', serviceUnavailable('not now'));
  await startNamespaceController({ ...options, resources: [PODS, CONFIG_MAPS] });
  await called('deleteCollection configmaps a/', 1);
  await new Promise(setImmediate);
  expect(names(NAMESPACES)).toEqual(['/a']);
  timers.advance(1000);
  await until([NAMESPACES], () => names(NAMESPACES).length === 0);
  expect(names(CONFIG_MAPS)).toEqual([]);
  stop.abort();
});

test('Events are deleted an hour after their last write, whatever timestamps they contain', async () => {
  const { backend, timers, stop, options, until, called, names } = setUp();
  const start = timers.now();
  const event = (name: string, created: number, times: object): CoreV1Event => {
    const { metadata, ...rest } = object('Event', name, 'a', times);
    return { ...rest, metadata: { ...metadata, creationTimestamp: formatTime(created) } } as CoreV1Event;
  };
  const minutes = (count: number): number => count * 60_000;
  const longAgo = { eventTime: '2020-01-01T00:00:00.000000Z', lastTimestamp: '2020-01-01T00:00:00Z' };
  backend.set(EVENTS, event('old', start - minutes(59), longAgo));
  backend.set(EVENTS, event('repeated', start - minutes(90), { lastTimestamp: formatTime(start - minutes(30)) }));
  backend.set(EVENTS, event('future', start - minutes(90), { lastTimestamp: '2099-01-01T00:00:00Z' }));
  await startEventsTtl(options);
  await called('watch events /', 1);
  backend.set(EVENTS, event('new', start, longAgo));
  timers.advance(minutes(1) - 1);
  expect(names(EVENTS)).toHaveLength(4);
  for (const [millis, written, left] of [
    [1, 'new', ['a/repeated', 'a/future', 'a/new']],
    [minutes(29), undefined, ['a/future', 'a/new']],
    [minutes(30), undefined, ['a/new']],
    [minutes(1), undefined, []],
  ] as const) {
    timers.advance(millis);
    if (written !== undefined) backend.set(EVENTS, event(written, start, longAgo));
    await until([EVENTS], () => names(EVENTS).length <= left.length);
    await new Promise(setImmediate);
    expect(names(EVENTS)).toEqual(left);
  }
  stop.abort();
});

test('Pods of a deleted node are deleted after 40 s, unless the node returns', async () => {
  const { backend, timers, stop, options, until, called, names } = setUp();
  for (const name of ['n', 'back']) backend.set(NODES, object('Node', name));
  for (const [name, nodeName] of [
    ['x', 'n'],
    ['y', 'back'],
    ['z', undefined],
    ['never', 'no-such-node'],
  ] as const) {
    backend.set(PODS, object('Pod', name, 'a', { spec: { nodeName } }));
  }
  await startPodGc({ ...options, terminatedPods: 0 });
  for (const ref of ['nodes', 'pods']) await called(`watch ${ref} /`, 1);
  backend.remove(NODES, undefined, 'n');
  backend.remove(NODES, undefined, 'back');
  timers.advance(39_999);
  backend.set(NODES, object('Node', 'back'));
  expect(names(PODS)).toHaveLength(4);
  timers.advance(1);
  await until([PODS], () => names(PODS).length === 2);
  expect(names(PODS)).toEqual(['a/y', 'a/z']);
  stop.abort();
});

test('too many terminated Pods: evicted ones are deleted first, then the oldest', async () => {
  const { backend, stop, options, until, called, names } = setUp();
  backend.set(NODES, object('Node', 'n'));
  const ended = (name: string, minute: number, more: object = {}): void =>
    void backend.set(PODS, {
      ...object('Pod', name, 'a', { spec: { nodeName: 'n' }, status: { phase: 'Succeeded', ...more } }),
      metadata: { name, namespace: 'a', creationTimestamp: `2026-01-31T00:0${minute}:00Z` },
    });
  ended('first', 0);
  ended('second', 1);
  ended('evicted', 2, { phase: 'Failed', reason: 'Evicted' });
  ended('lives', 0, { phase: 'Running' });
  await startPodGc({ ...options, terminatedPods: 2 });
  await until([PODS], () => names(PODS).length === 3);
  expect(names(PODS)).toEqual(['a/first', 'a/second', 'a/lives']);
  await called('watch pods /', 1);
  ended('lives', 0, { phase: 'Failed' });
  await until([PODS], () => names(PODS).length === 2);
  expect(names(PODS)).toEqual(['a/second', 'a/lives']);
  stop.abort();
});
