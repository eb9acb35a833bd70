import { expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type ContainerConfig, type ImageInfo, OutcomeUnknownError } from '../../runtime/runtime.ts';
import { createExecutor, type ExecutorPorts } from './executor.ts';

const { signal } = new AbortController();
const start = {
  ...({ kind: 'startContainer', container: 'app', containerKind: 'app', attempt: 0, backoffSeconds: 0 } as const),
  imageId: 'i',
  image: 'busybox:1.28',
  sandboxId: 's',
};
const info: ImageInfo = { id: 'i', tags: [], digests: [], sizeBytes: 1 };
const sandbox = { kind: 'createSandbox', attempt: 0 } as const;

function executor(
  failing: Set<string>,
  { precedesSandbox = false, failure = (name: string): Error => new Error(`${name} fails`) } = {},
) {
  const calls: string[] = [];
  const configs: ContainerConfig[] = [];
  const call = async <T>(name: string, answer?: T): Promise<T> => {
    calls.push(name);
    if (failing.has(name)) throw failure(name);
    return answer as T;
  };
  const images = new Map([
    ['i', info],
    ['img', info],
  ]);
  const environment = {
    nodeName: 'n',
    hostIps: [],
    podIps: [],
    allocatable: {},
    services: [],
    memoryCapacityBytes: 1,
    configMap: () => undefined,
    secret: () => undefined,
    volumePath: () => '',
    dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
    podDirectory: '/p',
    logsRoot: '/l',
    seccompRoot: '',
  };
  const ports = {
    environment: async () => environment,
    prepareSandbox: () => undefined,
    prepareContainer: async () => undefined,
    runtime: {
      runSandbox: () => call('sandbox', 's'),
      imageStatus: (reference: string) => call('status', images.get(reference)),
      createContainer: (_sandboxId: string, _sandbox: unknown, config: ContainerConfig) => {
        configs.push(config);
        return call('create', 'c');
      },
      startContainer: () => call('start'),
      stopSandbox: () => call('stop'),
      removeSandbox: () => call('remove'),
    },
    pullImage: () => call('pull'),
    timers: createVirtualTimers(),
    volumes: { rewrite: () => call('rewrite') },
    cgroups: { precedesSandbox, create: () => call('limits'), release: () => call('release') },
  } as unknown as ExecutorPorts;
  const execute = createExecutor(ports);
  const entry = { name: 'entry', imageFrom: 'app' };
  const pod = podOf({ containers: [containerOf('app')], deferContainers: [entry] });
  const run = (action: Parameters<typeof execute>[0], of = pod) => execute(action, of, signal, () => undefined);
  return { calls, configs, images, pod, run };
}

test('the executor writes the limits of the control group once, before the first container starts', async () => {
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
  expect(calls.filter((call) => call !== 'status' && call !== 'create')).toEqual([
    'sandbox',
    'limits',
    'limits',
    'limits',
    'start',
    'start',
  ]);
});

test('the executor writes the limits before the first container in a sandbox of an earlier engine, and again for the next sandbox', async () => {
  const { calls, run } = executor(new Set());
  await run(start);
  await run({ kind: 'stopSandbox', id: 's' });
  await run(sandbox);
  await run(start);
  expect(calls.filter((call) => call !== 'status' && call !== 'create')).toEqual([
    'limits',
    'start',
    'stop',
    'release',
    'sandbox',
    'limits',
    'start',
  ]);
});

test('the executor writes the limits before the sandbox if the runtime would create the group without limits', async () => {
  const failing = new Set(['limits']);
  const { calls, run } = executor(failing, { precedesSandbox: true });
  await expect(run(sandbox)).rejects.toThrow('limits fails');
  expect(calls).toEqual(['limits']);
  failing.clear();
  await run(sandbox);
  await run(start);
  expect(calls.filter((call) => call !== 'status' && call !== 'create')).toEqual([
    'limits',
    'limits',
    'sandbox',
    'start',
  ]);
});

test('the executor removes the control group of a deleted Pod together with its last sandbox', async () => {
  const { calls, pod, run } = executor(new Set());
  const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-31T09:30:00Z' };
  await run({ kind: 'stopSandbox', id: 's' }, { ...pod, metadata });
  expect(calls).toEqual(['stop']);
  await run({ kind: 'removeSandbox', id: 's' }, { ...pod, metadata });
  expect(calls.toSorted()).toEqual(['release', 'remove', 'stop']);
  await run(start, { ...pod, metadata });
  await run({ kind: 'removeSandbox', id: 'older' }, { ...pod, metadata });
  expect(calls.filter((call) => call === 'release')).toHaveLength(1);
});

test.each([
  ['sandbox', sandbox],
  ['status', { kind: 'checkImage', container: 'app', attempt: 0, image: 'img', mustExist: false }],
  ['pull', { kind: 'pullImage', container: 'app', attempt: 0, image: 'img' }],
  ['status', start],
  ['create', start],
  ['start', start],
  ['stop', { kind: 'stopSandbox', id: 's' }],
] as const)('the executor rethrows an unknown outcome of the call %s unchanged', async (name, action) => {
  const unknown = new OutcomeUnknownError('rpc error: code = Unavailable desc = connect ECONNREFUSED');
  const { run } = executor(new Set([name]), { failure: () => unknown });
  await expect(run(action)).rejects.toBe(unknown);
});

test.each([
  ['status', 'ImageInspectError', { kind: 'checkImage', container: 'app', attempt: 0, image: 'img', mustExist: false }],
  ['pull', 'ErrImagePull', { kind: 'pullImage', container: 'app', attempt: 0, image: 'img' }],
  ['create', 'CreateContainerError', start],
  ['start', 'RunContainerError', start],
] as const)('a failed call %s is reported with the reason %s', async (name, reason, action) => {
  await expect(executor(new Set([name])).run(action)).rejects.toMatchObject({ reason });
});

const startEntry = { ...start, container: 'entry', containerKind: 'defer', image: 'tools:2', imageId: 't' } as const;

test('a defer container with imageFrom runs the image that the action names', async () => {
  const { configs, images, run } = executor(new Set());
  images.set('t', { ...info, id: 't', user: '70' });
  await run(startEntry);
  expect(configs).toMatchObject([{ name: 'entry', imageName: 'tools:2', imageId: 't', security: { runAsUser: 70 } }]);
});

test('the executor reports an image that no longer exists at container start as absent, under the name in the action', async () => {
  const { run } = executor(new Set());
  const state = { attempt: 0, image: 'tools:2', state: 'absent' };
  expect(await run(startEntry)).toEqual({ image: { container: 'entry', state } });
});

test('the action writeDownwardFiles rewrites the downward API files and returns their version', async () => {
  const { calls, run } = executor(new Set());
  expect(await run({ kind: 'writeDownwardFiles', version: '7' })).toEqual({ downward: '7' });
  expect(calls).toEqual(['rewrite']);
});
