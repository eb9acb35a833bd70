import { expect, test } from 'vitest';
import { containerOf, deferOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Service } from '../../api/generated/types.ts';
import { RUNTIME_CLASSES } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { createEnvironmentSource, type PodEnvironmentOptions } from './configuration-source.ts';

const { signal } = new AbortController();
const backend = await registryBackend();

const optionsWith = (services: PodEnvironmentOptions['services']): Omit<PodEnvironmentOptions, 'isStatic'> => ({
  client: clientOf(backend),
  nodeName: 'n',
  hostIps: [],
  allocatable: {},
  memoryCapacityBytes: 1,
  clusterDns: [],
  clusterDomain: 'c',
  resolvConf: '/dev/null',
  logsRoot: '/l',
  seccompRoot: '/s',
  services,
  podIps: () => [],
  podDirectory: () => '/p',
  volumePath: () => '/v',
});

test('an environment source returns the same array of Services until one of them changes', async () => {
  const service = (name: string): Service => ({ apiVersion: 'v1', kind: 'Service', metadata: { name } });
  const known = new Map([['a', service('a')]]);
  const environment = createEnvironmentSource({
    ...optionsWith({ synced: Promise.resolve(), list: () => [...known.values()] }),
    isStatic: () => false,
  });
  const listed = async () => (await environment(podOf(), containerOf('app'), signal)).services;
  const first = await listed();
  expect(await listed()).toBe(first);
  known.set('a', service('a'));
  const second = await listed();
  expect(second).not.toBe(first);
  known.set('b', service('b'));
  expect((await listed()).length).toBe(2);
  known.delete('b');
  expect((await listed()).length).toBe(1);
});

test('a container waits until the Services are known; a sandbox and a static Pod do not', async () => {
  const { promise: synced, resolve } = Promise.withResolvers<void>();
  let known: Service[] = [];
  const environmentOf = (isStatic: boolean) =>
    createEnvironmentSource({ ...optionsWith({ synced, list: () => known }), isStatic: () => isStatic });
  const [pod, container] = [podOf(), containerOf('app')];
  const environment = environmentOf(false);
  await environment(pod, undefined, signal);
  const waiting = environment(pod, container, signal);
  let done = false;
  void waiting.then(() => {
    done = true;
  });
  // This call takes the same steps as the waiting call except the wait. If the waiting call did not wait, `done` would be true when this
  // call ends.
  expect((await environmentOf(true)(pod, container, signal)).services).toEqual([]);
  expect(done).toBe(false);
  known = [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'late' } }];
  resolve();
  expect((await waiting).services).toEqual(known);
});

const noServices: PodEnvironmentOptions['services'] = { synced: Promise.resolve(), list: () => [] };

test('the RuntimeClass is read for a sandbox, and only for a container with recursively read-only mounts', async () => {
  const object = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'safe' }, handler: 'runsc' };
  await backend.set(RUNTIME_CLASSES, object as KubeObject);
  const environment = createEnvironmentSource({ ...optionsWith(noServices), isStatic: () => false });
  const mount = { name: 'v', mountPath: '/v' };
  for (const [volumeMounts, handler] of [
    [undefined, undefined],
    [[mount, { ...mount, recursiveReadOnly: 'Disabled' }], undefined],
    [[mount, { ...mount, recursiveReadOnly: 'IfPossible' }], 'runsc'],
  ] as const) {
    const container = containerOf('app', volumeMounts && { volumeMounts: [...volumeMounts] });
    const { runtimeHandler } = await environment(podOf({ runtimeClassName: 'safe' }), container, signal);
    expect(runtimeHandler).toBe(handler);
  }
  expect((await environment(podOf({ runtimeClassName: 'safe' }), undefined, signal)).runtimeHandler).toBe('runsc');
  expect((await environment(podOf(), undefined, signal)).runtimeHandler).toBeUndefined();
});

test('the objects of defer containers are copied when another container starts, and only they replace unreadable objects', async () => {
  let copies = 0;
  const kept = {
    keep: async () => void copies++,
    find: async () => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'copy' } }),
  };
  const environment = createEnvironmentSource({
    ...optionsWith(noServices),
    isStatic: () => false,
    kept: kept as unknown as PodEnvironmentOptions['kept'],
  });
  const envFrom = [{ configMapRef: { name: 'settings' } }];
  const [app, last] = [containerOf('app', { envFrom }), deferOf('last', { envFrom })];
  const pod = podOf({ containers: [app], deferContainers: [last] });
  await environment(pod, undefined, signal);
  expect(copies).toBe(0);
  expect((await environment(pod, last, signal)).configMap('settings')?.metadata.name).toBe('copy');
  expect(copies).toBe(0);
  expect((await environment(pod, app, signal)).configMap('settings')).toBeUndefined();
  expect(copies).toBe(1);
  backend.failNext('get configmaps', serviceUnavailable('the API is down'));
  await expect(environment(pod, app, signal)).rejects.toThrow('the API is down');
  backend.failNext('get configmaps', serviceUnavailable('the API is down'));
  expect((await environment(pod, last, signal)).configMap('settings')?.metadata.name).toBe('copy');
});
