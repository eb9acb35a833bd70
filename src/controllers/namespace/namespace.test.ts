import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Namespace } from '../../api/generated/types.ts';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
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
const start = async (): Promise<void> => {
  const log = { ...silentLog, warn: (_: string, fields?: object) => void errors.push(JSON.stringify(fields)) };
  const client = clientOf(backend);
  const resources = () => [CONFIG_MAPS, SECRETS];
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
  await vi.waitFor(() => expect(called(other)).toBe(1));
  stop.abort();
  stop = new AbortController();
  await start();
  await settled();
  expect(called(other)).toBe(1);
});

test('the objects of a resource are deleted only once no object of the previous resource is left', async () => {
  await put('ConfigMap', ['x.io/y']);
  await put('Secret');
  await start();
  await backend.remove(NAMESPACES, undefined, 'a');
  await vi.waitFor(() => expect(found()?.status?.conditions).toHaveLength(1));
  await settled();
  expect([called('deleteCollection secrets'), found()?.status?.conditions?.[0]?.message]).toEqual([
    0,
    'Some resources are remaining: configmaps. has 1 resource instances',
  ]);
  await put('ConfigMap');
  await vi.waitFor(() => expect(found()).toBeUndefined());
  expect(backend.objects(SECRETS)).toEqual([]);
  await settled();
  expect(errors).toEqual([]);
});
