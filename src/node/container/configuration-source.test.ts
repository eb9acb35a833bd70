import { expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Service } from '../../api/generated/types.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { inProcessClient } from '../../client/typed-client.ts';
import { createEnvironmentSource, type PodEnvironmentOptions } from './configuration-source.ts';

const { signal } = new AbortController();
const backend = await registryBackend();

const optionsWith = (services: PodEnvironmentOptions['services']): Omit<PodEnvironmentOptions, 'isStatic'> => ({
  client: inProcessClient(backend),
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
  // This call begins after the waiting call and takes the same steps except the wait. Therefore, `done` would be true by its end if the
  // other call did not wait.
  expect((await environmentOf(true)(pod, container, signal)).services).toEqual([]);
  expect(done).toBe(false);
  known = [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'late' } }];
  resolve();
  expect((await waiting).services).toEqual(known);
});
