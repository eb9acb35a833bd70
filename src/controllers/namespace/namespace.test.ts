import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Namespace, Pod } from '../../api/generated/types.ts';
import { CONFIG_MAPS, NAMESPACES, PODS, SECRETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import { notFound, serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { startNamespaceController } from './namespace.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
let stop: AbortController;
let errors: string[];
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  stop = new AbortController();
  errors = [];
});
afterEach(() => stop.abort());

const FINALIZE = 'update namespaces/finalize /a';
const start = async (served: readonly ResourceRef[] = [CONFIG_MAPS, SECRETS]): Promise<void> => {
  const log = { ...silentLog, warn: (_: string, fields?: object) => void errors.push(JSON.stringify(fields)) };
  const client = clientOf(backend);
  const resources = () => served;
  await startNamespaceController(withInformers({ client, timers, log, signal: stop.signal, resources }));
  await vi.waitFor(() => expect(backend.calls).toContain('watch namespaces /'));
};
const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
};
const called = (begin: string): number => backend.calls.filter((call) => call.startsWith(begin)).length;
const found = (): Namespace | undefined =>
  (backend.objects(NAMESPACES) as Namespace[]).find(({ metadata }) => metadata.name === 'a');
const put = (kind: string, finalizers: string[] = []) =>
  backend.set(kind === 'Secret' ? SECRETS : CONFIG_MAPS, {
    apiVersion: 'v1',
    kind,
    metadata: { name: 'x', namespace: 'a', finalizers },
  });

test('a namespace that is not being deleted keeps its objects', async () => {
  await put('ConfigMap');
  await start();
  await backend.set(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a', labels: { b: 'c' } } });
  await settled();
  expect([backend.objects(CONFIG_MAPS).length, called('deleteCollection'), called(FINALIZE)]).toEqual([1, 0, 0]);
});

test('a failed removal of the finalizer is repeated, unless the namespace no longer exists', async () => {
  await start();
  backend.failNext(FINALIZE, serviceUnavailable('not now'));
  await backend.remove(NAMESPACES, undefined, 'a');
  await vi.waitFor(() => expect(errors).toHaveLength(1));
  expect(found()).toBeDefined();
  backend.failNext(FINALIZE, notFound(NAMESPACES, 'a'));
  timers.advance(60_000);
  await vi.waitFor(() => expect(called(FINALIZE)).toBe(2));
  timers.advance(60_000);
  await settled();
  expect([called(FINALIZE), errors.length]).toEqual([2, 1]);
});

test('a namespace that is held by the finalizer of another controller is finalized only once', async () => {
  await backend.set(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'b' },
    spec: { finalizers: ['x.io/y'] },
  } as Namespace);
  await backend.remove(NAMESPACES, undefined, 'b');
  const other = 'update namespaces/finalize /b';
  await start();
  const finalizers = () =>
    (backend.objects(NAMESPACES) as Namespace[]).find(({ metadata }) => metadata.name === 'b')?.spec?.finalizers;
  await vi.waitFor(() => expect(finalizers()).toEqual(['x.io/y']));
  stop.abort();
  stop = new AbortController();
  await start();
  await settled();
  expect(called(other)).toBe(1);
});

const conditionsOf = (namespace = found()): Record<string, string | undefined> =>
  Object.fromEntries(
    (namespace?.status?.conditions ?? []).map(({ type, status, message }) => [type, `${status} ${message}`]),
  );

test('other objects are deleted only once no Pod is left', async () => {
  await backend.set(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a', finalizers: ['x.io/y'] },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  } as Pod);
  await put('Secret');
  await start([SECRETS, PODS, CONFIG_MAPS]);
  await backend.remove(NAMESPACES, undefined, 'a');
  await vi.waitFor(() =>
    expect(conditionsOf()).toEqual({
      NamespaceDeletionDiscoveryFailure: 'False All resources successfully discovered',
      NamespaceDeletionGroupVersionParsingFailure: 'False All legacy kube types successfully parsed',
      NamespaceDeletionContentFailure: 'False All content successfully deleted, may be waiting on finalization',
      NamespaceContentRemaining: 'True Some resources are remaining: pods. has 1 resource instances',
      NamespaceFinalizersRemaining:
        'True Some content in the namespace has finalizers remaining: x.io/y in 1 resource instances',
    }),
  );
  await settled();
  expect(called('deleteCollection secrets')).toBe(0);
  await backend.patch(PODS, 'a', 'p', 'application/merge-patch+json', { metadata: { finalizers: [] } });
  await vi.waitFor(() => expect(found()).toBeUndefined());
  expect(backend.objects(SECRETS)).toEqual([]);
  expect(errors).toEqual([]);
});

test('objects that remain hold up neither the deletion of other objects nor the conditions', async () => {
  await put('ConfigMap', ['x.io/y']);
  await put('Secret');
  await start();
  await backend.remove(NAMESPACES, undefined, 'a');
  const remaining = 'True Some resources are remaining: configmaps. has 1 resource instances';
  await vi.waitFor(() => expect(conditionsOf()['NamespaceContentRemaining']).toBe(remaining));
  expect(backend.objects(SECRETS)).toEqual([]);
  await put('ConfigMap');
  await vi.waitFor(() => expect(found()).toBeUndefined());
  await settled();
  expect(errors).toEqual([]);
});

test('the conditions follow the objects that remain and their finalizers, without further deletes', async () => {
  const set = (name: string, finalizers: string[]) =>
    backend.set(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'a', finalizers },
    });
  const remaining = (objects: number, finalizers: string) =>
    vi.waitFor(() =>
      expect(conditionsOf()).toMatchObject({
        NamespaceContentRemaining: `True Some resources are remaining: configmaps. has ${objects} resource instances`,
        NamespaceFinalizersRemaining: `True Some content in the namespace has finalizers remaining: ${finalizers}`,
      }),
    );
  await set('x', ['x.io/y', 'x.io/z']);
  await set('w', ['x.io/y']);
  await start();
  await backend.remove(NAMESPACES, undefined, 'a');
  await remaining(2, 'x.io/y in 2 resource instances, x.io/z in 1 resource instances');
  await set('x', ['x.io/z']);
  await remaining(2, 'x.io/y in 1 resource instances, x.io/z in 1 resource instances');
  await set('w', []);
  await remaining(1, 'x.io/z in 1 resource instances');
  expect(called('deleteCollection configmaps')).toBe(1);
  await set('x', []);
  await vi.waitFor(() => expect(found()).toBeUndefined());
});

test('a failed delete is a condition and is repeated, and other objects are deleted meanwhile', async () => {
  await put('ConfigMap');
  await put('Secret');
  await start();
  backend.failNext('deleteCollection configmaps', serviceUnavailable('not now'));
  await backend.remove(NAMESPACES, undefined, 'a');
  const failure = 'True Failed to delete all resource types, 1 remaining: not now';
  await vi.waitFor(() => expect(conditionsOf()['NamespaceDeletionContentFailure']).toBe(failure));
  await vi.waitFor(() => expect(backend.objects(SECRETS)).toEqual([]));
  await vi.waitFor(() => expect(errors).toHaveLength(1));
  timers.advance(60_000);
  await vi.waitFor(() => expect(found()).toBeUndefined());
});

test('the Pods of a namespace with defer containers are deleted for the reason OwnerDeleted', async () => {
  await backend.set(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a', finalizers: ['x.io/y'] },
    spec: { containers: [{ name: 'c', image: 'i' }], deferContainers: [{ name: 'd', image: 'i', trigger: 'PreExit' }] },
  } as Pod);
  await start([PODS]);
  await backend.remove(NAMESPACES, undefined, 'a');
  const pod = (): Pod => backend.objects(PODS)[0] as Pod;
  await vi.waitFor(() => expect(pod().metadata.deletionTimestamp).toBeDefined());
  expect(pod().status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'DeletionReason', status: 'True', reason: 'OwnerDeleted' }),
  );
});
