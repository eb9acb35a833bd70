import { expect, test } from 'vitest';
import { containerOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Service } from '../api/generated/types.ts';
import { memoryBackend } from '../client/testing.ts';
import { inProcessClient } from '../client/typed-client.ts';
import { createEnvironmentSource } from './pod-environment.ts';

const { signal } = new AbortController();

test('a container waits until the Services are known; its sandbox does not, nor does a static Pod', async () => {
  const { promise: synced, resolve } = Promise.withResolvers<void>();
  let known: Service[] = [];
  const environmentOf = (isStatic: boolean) =>
    createEnvironmentSource({
      client: inProcessClient(memoryBackend()),
      ...{ nodeName: 'n', hostIps: [], allocatable: {}, memoryCapacityBytes: 1, clusterDns: [], clusterDomain: 'c' },
      ...{ resolvConf: '/dev/null', logsRoot: '/l', seccompRoot: '/s' },
      services: { synced, list: () => known },
      isStatic: () => isStatic,
      ...{ podIps: () => [], podDirectory: () => '/p', volumePath: () => '/v' },
    });
  const [pod, container] = [podOf(), containerOf('app')];
  const environment = environmentOf(false);
  await environment(pod, undefined, signal);
  const waiting = environment(pod, container, signal);
  let done = false;
  void waiting.then(() => {
    done = true;
  });
  // As many steps as it takes.
  expect((await environmentOf(true)(pod, container, signal)).services).toEqual([]);
  expect(done).toBe(false);
  known = [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'late' } }];
  resolve();
  expect((await waiting).services).toEqual(known);
});
