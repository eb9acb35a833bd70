import { expect, test } from 'vitest';
import type { ConfigMap, CoreV1Event, Namespace } from '../api/generated/types.ts';
import { kinds } from '../api/kinds.ts';
import { CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS } from '../api/resources.ts';
import { SYSTEM_NAMESPACES } from '../apiserver/registry/bootstrap.ts';
import { registryBackend, withInformers } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { ApiError, forbidden, serviceUnavailable } from '../machinery/status.ts';
import { formatTime } from '../machinery/time.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
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
const pod = (name: string, nodeName?: string, namespace = 'a'): KubeObject =>
  object('Pod', name, namespace, { spec: { nodeName, containers: [{ name: 'app', image: 'x' }] } });

async function setUp(...namespaces: string[]) {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers, namespaces });
  const stop = new AbortController();
  const options = withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal });
  let wake = (): void => {};
  /** Resolves once `holds` returns true. Calls it now and after each change of one of the resources. */
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
  const objects = (ref: ResourceRef): KubeObject[] => {
    const system: readonly string[] = SYSTEM_NAMESPACES;
    return backend.objects(ref).filter(({ metadata }) => !system.includes(metadata.namespace ?? metadata.name));
  };
  const names = (ref: ResourceRef): string[] =>
    objects(ref).map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`);
  return { backend, timers, stop, options, until, called, objects, names };
}

test('every active namespace gets its default ServiceAccount, again if it is deleted', async () => {
  const { backend, stop, options, until, called, names } = await setUp('a', 'going');
  await backend.remove(NAMESPACES, undefined, 'going');
  for (const name of ['a', 'going']) await backend.remove(SERVICE_ACCOUNTS, name, 'default');
  await startServiceAccountController(options);
  expect(names(SERVICE_ACCOUNTS)).toEqual(['a/default']);
  expect(backend.calls).not.toContain('create serviceaccounts going/default');
  for (const [ref, count] of [
    ['namespaces', 1],
    ['serviceaccounts', 1],
  ] as const)
    await called(`watch ${ref} /`, count);
  await backend.set(NAMESPACES, object('Namespace', 'b'));
  await until([SERVICE_ACCOUNTS], () => names(SERVICE_ACCOUNTS).length === 2);
  await backend.remove(SERVICE_ACCOUNTS, 'a', 'default');
  await until([SERVICE_ACCOUNTS], () => names(SERVICE_ACCOUNTS).length === 2);
  expect(names(SERVICE_ACCOUNTS)).toEqual(['a/default', 'b/default']);
  stop.abort();
});

test('a failed creation of a ServiceAccount is retried, except in a terminating namespace', async () => {
  const { backend, timers, stop, options, until, called, names } = await setUp('a', 'b', 'c');
  for (const name of ['a', 'b', 'c']) await backend.remove(SERVICE_ACCOUNTS, name, 'default');
  const { status } = forbidden(SERVICE_ACCOUNTS, 'default', 'it is being terminated');
  const terminating = new ApiError({ ...status, details: { causes: [{ reason: 'NamespaceTerminating' }] } });
  backend.failNext('create serviceaccounts a/', serviceUnavailable('not now'));
  backend.failNext('create serviceaccounts b/', terminating);
  backend.failNext('create serviceaccounts c/', forbidden(SERVICE_ACCOUNTS, 'default', 'exceeded quota: q'));
  await startServiceAccountController(options);
  expect(names(SERVICE_ACCOUNTS)).toEqual([]);
  timers.advance(100_000);
  for (const name of ['a', 'c']) await called(`create serviceaccounts ${name}/default`, 2);
  await until([SERVICE_ACCOUNTS], () => names(SERVICE_ACCOUNTS).length > 1);
  expect(names(SERVICE_ACCOUNTS).sort()).toEqual(['a/default', 'c/default']);
  stop.abort();
});

test('every active namespace gets the root certificate, and a changed one is corrected', async () => {
  const { backend, stop, options, until, called, objects } = await setUp('a', 'old');
  const certificate = (namespace: string, data: object): KubeObject =>
    object('ConfigMap', 'kube-root-ca.crt', namespace, { data });
  await backend.set(CONFIG_MAPS, certificate('old', { 'ca.crt': 'former' }));
  await startRootCaPublisher({ ...options, caPem: 'PEM' });
  const data = () =>
    Object.fromEntries((objects(CONFIG_MAPS) as ConfigMap[]).map((map) => [map.metadata.namespace, map.data]));
  expect(data()).toEqual({ old: { 'ca.crt': 'PEM' }, a: { 'ca.crt': 'PEM' } });
  await called('watch configmaps /', 1);
  await backend.set(CONFIG_MAPS, certificate('a', { 'ca.crt': 'PEM', more: 'x' }));
  await until([CONFIG_MAPS], () => data()['a']?.['more'] === undefined);
  await backend.remove(CONFIG_MAPS, 'a', 'kube-root-ca.crt');
  await until([CONFIG_MAPS], () => data()['a'] !== undefined);
  expect(data()['a']).toEqual({ 'ca.crt': 'PEM' });
  stop.abort();
});

test('the content of a terminating namespace is deleted, Pods first, then its finalizer', async () => {
  const { backend, stop, options, until, objects, names } = await setUp('a', 'b');
  await startNamespaceController({ ...options, resources: () => [PODS, CONFIG_MAPS] });
  // This Pod is on a node, so it terminates gracefully and still exists after the delete.
  await backend.set(PODS, pod('x', 'n'));
  await backend.set(PODS, pod('other', undefined, 'b'));
  await backend.set(CONFIG_MAPS, object('ConfigMap', 'm', 'a'));
  await backend.remove(NAMESPACES, undefined, 'a');
  const conditions = () => (objects(NAMESPACES)[0] as Namespace).status?.conditions;
  await until([NAMESPACES], () => conditions() !== undefined);
  expect(conditions()).toContainEqual(
    expect.objectContaining({
      type: 'NamespaceContentRemaining',
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: 'Some resources are remaining: pods. has 1 resource instances',
    }),
  );
  expect(names(CONFIG_MAPS)).toEqual(['a/m']);
  expect(objects(PODS).find(({ metadata }) => metadata.name === 'x')?.metadata.deletionTimestamp).toBeDefined();

  await backend.remove(PODS, 'a', 'x');
  await until([NAMESPACES], () => !names(NAMESPACES).includes('/a'));
  expect([names(PODS), names(CONFIG_MAPS)]).toEqual([['b/other'], []]);
  stop.abort();
});

test('all namespaced resources are deleted with their namespace, except Pod records', () => {
  const resources = namespacedResources(kinds).map(({ resource }) => resource);
  expect(resources).toEqual(expect.arrayContaining(['configmaps', 'pods']));
  expect(resources).not.toContain('podrecords');
  const groups = new Set(namespacedResources(kinds).map(({ group }) => group));
  // Events of events.k8s.io are the Events of the core group, and metrics are not stored.
  expect([groups.has('events.k8s.io'), groups.has('metrics.k8s.io')]).toEqual([false, false]);
});

test('a namespace that was terminating before the start is finished, and a failure is retried', async () => {
  const { backend, timers, stop, options, called, names } = await setUp('a');
  await backend.set(CONFIG_MAPS, object('ConfigMap', 'm', 'a'));
  await backend.remove(NAMESPACES, undefined, 'a');
  backend.failNext('deleteCollection', serviceUnavailable('not now'));
  await startNamespaceController({ ...options, resources: () => [PODS, CONFIG_MAPS] });
  await called('deleteCollection configmaps a/', 1);
  await new Promise(setImmediate);
  expect(names(NAMESPACES)).toEqual(['/a']);
  while (names(NAMESPACES).length > 0) {
    timers.advance(1000);
    await new Promise(setImmediate);
  }
  expect(names(CONFIG_MAPS)).toEqual([]);
  stop.abort();
});

test('Events are deleted an hour after their last write, regardless of the timestamps that they contain', async () => {
  const { backend, timers, stop, options, until, called, names } = await setUp('a');
  const write = async (name: string, times: object): Promise<void> => {
    const reporting = { reportingComponent: 'x', reportingInstance: 'y', action: 'z', reason: 'r' };
    const involvedObject = { kind: 'Pod', namespace: 'a', name: 'p' };
    await backend.set(EVENTS, object('Event', name, 'a', { involvedObject, ...reporting, ...times }) as CoreV1Event);
  };
  const minutes = (count: number): number => count * 60_000;
  const longAgo = { eventTime: '2020-01-01T00:00:00.000000Z' };
  await write('repeated', { lastTimestamp: formatTime(timers.now() + minutes(60)) });
  await write('future', { lastTimestamp: '2099-01-01T00:00:00Z' });
  timers.advance(minutes(31));
  await write('old', longAgo);
  timers.advance(minutes(59));
  await startEventsTtl(options);
  await called('watch events /', 1);
  await write('new', longAgo);
  timers.advance(minutes(1) - 1);
  expect(names(EVENTS)).toHaveLength(4);
  for (const [millis, written, left] of [
    [1, 'new', ['a/future', 'a/new', 'a/repeated']],
    [minutes(29), undefined, ['a/future', 'a/new']],
    [minutes(30), undefined, ['a/new']],
    [minutes(1), undefined, []],
  ] as const) {
    timers.advance(millis);
    if (written !== undefined) await write(written, { ...longAgo, message: 'again' });
    await until([EVENTS], () => names(EVENTS).length <= left.length);
    await new Promise(setImmediate);
    expect(names(EVENTS)).toEqual(left);
  }
  stop.abort();
});

test('Pods of a deleted node are deleted after 40 s, unless the node returns', async () => {
  const { backend, timers, stop, options, until, called, names } = await setUp('a');
  for (const name of ['n', 'back']) await backend.set(NODES, object('Node', name));
  for (const [name, nodeName] of [
    ['x', 'n'],
    ['y', 'back'],
    ['z', undefined],
    ['never', 'no-such-node'],
  ] as const) {
    await backend.set(PODS, pod(name, nodeName));
  }
  await startPodGc({ ...options, terminatedPods: 0 });
  for (const ref of ['nodes', 'pods']) await called(`watch ${ref} /`, 1);
  await backend.remove(NODES, undefined, 'n');
  await backend.remove(NODES, undefined, 'back');
  timers.advance(39_999);
  await backend.set(NODES, object('Node', 'back'));
  expect(names(PODS)).toHaveLength(4);
  timers.advance(1);
  await until([PODS], () => names(PODS).length === 2);
  expect(names(PODS)).toEqual(['a/y', 'a/z']);
  stop.abort();
});

test('if there are too many terminated Pods, evicted Pods are deleted first, then the oldest', async () => {
  const { backend, timers, stop, options, until, called, names } = await setUp('a');
  await backend.set(NODES, object('Node', 'n'));
  const create = async (name: string, status: object): Promise<void> => {
    await backend.set(PODS, { ...pod(name, 'n'), status } as KubeObject);
  };
  await create('first', { phase: 'Succeeded' });
  await create('lives', { phase: 'Running' });
  timers.advance(60_000);
  await create('second', { phase: 'Succeeded' });
  timers.advance(60_000);
  await create('evicted', { phase: 'Failed', reason: 'Evicted' });
  await startPodGc({ ...options, terminatedPods: 2 });
  await until([PODS], () => names(PODS).length === 3);
  expect(names(PODS)).toEqual(['a/first', 'a/lives', 'a/second']);
  await called('watch pods /', 1);
  await backend.setStatus(PODS, 'a', 'lives', { phase: 'Failed' });
  await until([PODS], () => names(PODS).length === 2);
  expect(names(PODS)).toEqual(['a/lives', 'a/second']);
  stop.abort();
});
