import { expect, test } from 'vitest';
import { containerOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import { createExecutor, type ExecutorPorts } from './executor.ts';

const { signal } = new AbortController();
const start = {
  ...({ kind: 'startContainer', container: 'app', containerKind: 'app', attempt: 0, backoffSeconds: 0 } as const),
  ...{ imageId: 'i', sandboxId: 's' },
};
const sandbox = { kind: 'createSandbox', attempt: 0 } as const;

/** An executor whose calls are told, and fail where they are told to. */
function executor(failing: Set<string>) {
  const calls: string[] = [];
  const call = async <T>(name: string, answer?: T): Promise<T> => {
    calls.push(name);
    if (failing.has(name)) throw new Error(`${name} fails`);
    return answer as T;
  };
  const environment = {
    ...{ nodeName: 'n', hostIps: [], podIps: [], allocatable: {}, services: [], memoryCapacityBytes: 1 },
    ...{ configMap: () => undefined, secret: () => undefined, volumePath: () => '' },
    dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
    ...{ podDirectory: '/p', logsRoot: '/l', seccompRoot: '' },
  };
  const ports = {
    client: { resource: () => ({}) },
    environment: async () => environment,
    prepareSandbox: async () => undefined,
    prepareContainer: async () => undefined,
    runtime: {
      runSandbox: () => call('sandbox', 's'),
      imageStatus: async () => ({ id: 'i', tags: [], digests: [], sizeBytes: 1 }),
      createContainer: async () => 'c',
      startContainer: () => call('start'),
      stopSandbox: () => call('stop'),
    },
    cgroups: { create: () => call('limits'), release: () => call('release') },
  } as unknown as ExecutorPorts;
  const execute = createExecutor(ports);
  const pod = podOf({ containers: [containerOf('app')] });
  const run = (action: Parameters<typeof execute>[0]) => execute(action, pod, signal, () => undefined);
  return { calls, run };
}

test('no container starts before the Pod has its limits, which are written once', async () => {
  const failing = new Set(['limits']);
  const { calls, run } = executor(failing);
  await expect(run(sandbox)).rejects.toThrow('limits fails');
  await expect(run(start)).rejects.toMatchObject({
    reason: 'CreateContainerError',
    message: expect.stringMatching(/^failed to ensure that the pod: \S+ cgroups exist .* applied: limits fails$/),
  });
  failing.clear();
  await run(start);
  await run(start);
  expect(calls).toEqual(['sandbox', 'limits', 'limits', 'limits', 'start', 'start']);
});

test('of a sandbox that another engine made they are written before the first container, and again with the next one', async () => {
  const { calls, run } = executor(new Set());
  await run(start);
  await run({ kind: 'stopSandbox', id: 's' });
  await run(sandbox);
  await run(start);
  expect(calls).toEqual(['limits', 'start', 'stop', 'release', 'sandbox', 'limits', 'start']);
});
