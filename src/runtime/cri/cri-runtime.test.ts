/** Uses a connection in memory. */
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type ContainerConfig, type ContainerRuntime, OutcomeUnknownError, type SandboxConfig } from '../runtime.ts';
import { type Connection, connect, RuntimeCallError, type RuntimeErrorCode } from './connection.ts';
import { connectRuntime } from './cri-runtime.ts';
import { ATTEMPT_LABEL, CONTAINER_NAME_LABEL, POD_UID_LABEL } from './labels.ts';

// Test files share the loaded modules, so this file loads its own copies, and the next file loads the original modules.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock('./connection.ts');
  vi.resetModules();
});
vi.mock('./connection.ts', { spy: true });

const { signal } = new AbortController();
const scope = { scope: 'mine' };
const pod = { uid: 'uid', namespace: 'default', name: 'pod' };
const sandbox: SandboxConfig = { pod, attempt: 2, hostname: 'pod', logDirectory: '/logs', labels: {}, annotations: {} };
const container: ContainerConfig = {
  pod,
  name: 'app',
  kind: 'app',
  attempt: 3,
  imageId: 'sha256:1',
  imageName: 'busybox',
  env: [],
  mounts: [],
  logPath: 'app/3.log',
  annotations: {},
  resources: {},
  security: {},
};

let calls: [method: string, request: Record<string, unknown>][];
/** By method: the response, or the error with which the call rejects. The response to other methods is an empty message. */
let answers: Record<string, object>;
let closed: number;

beforeEach(() => {
  [calls, closed] = [[], 0];
  answers = { Version: { runtimeName: 'containerd', runtimeVersion: '2.0', runtimeApiVersion: 'v1' } };
  const connection = {
    unary: async (name: string, request: Record<string, unknown>) => {
      const method = name.slice(name.indexOf('/') + 1);
      calls.push([method, request]);
      const answer = answers[method] ?? {};
      if (answer instanceof Error) throw answer;
      return answer;
    },
    close: () => {
      closed++;
    },
  };
  vi.mocked(connect).mockReturnValue(connection as unknown as Connection);
});
afterEach(() => void vi.resetAllMocks());

async function connected(): Promise<ContainerRuntime> {
  const timers = createVirtualTimers();
  const runtime = await connectRuntime({ endpoint: 'unix:///x', log: silentLog, timers, namespaceLabels: scope });
  calls = [];
  return runtime;
}
const failure = (details: string, code: RuntimeErrorCode = 'Unknown') => new RuntimeCallError(code, details);
const labels = (attempt: number, more = {}) => ({ [POD_UID_LABEL]: 'uid', [ATTEMPT_LABEL]: String(attempt), ...more });

test.each([
  ['containerd', 'function'],
  ['cri-o', 'undefined'],
])('the calls of %s to collect garbage and to mount images are of the type %s', async (runtimeName, type) => {
  answers['Version'] = { runtimeName, runtimeVersion: '2.0', runtimeApiVersion: 'v1' };
  const runtime = await connected();
  expect([typeof runtime.collectGarbage, typeof runtime.imageMounts]).toEqual([type, type]);
  expect(await runtime.version(signal)).toEqual({ name: runtimeName, version: '2.0', apiVersion: 'v1' });
  await runtime.close();
  expect(closed).toBe(1);
});

test('the connection to a runtime that does not report its version is closed', async () => {
  answers['Version'] = failure('unknown service', 'Unimplemented');
  await expect(connected()).rejects.toBe(answers['Version']);
  expect(closed).toBe(1);
});

test('a sandbox is created with its runtime handler, which is the default one unless it is given', async () => {
  const runtime = await connected();
  answers['RunPodSandbox'] = { podSandboxId: 's1' };
  expect(await runtime.runSandbox(sandbox, signal)).toBe('s1');
  await runtime.runSandbox({ ...sandbox, runtimeHandler: 'kata' }, signal);
  expect(calls).toMatchObject([
    ['RunPodSandbox', { runtimeHandler: '', config: { labels: { ...labels(2), ...scope } } }],
    ['RunPodSandbox', { runtimeHandler: 'kata' }],
  ]);
});

test.each([
  ['privileged', { privileged: true }, {}, true],
  ['not privileged, although the container is', { privileged: false }, { privileged: true }, false],
  ['as privileged as the container if it does not say', {}, { privileged: true }, true],
  ['not privileged if neither says so', {}, {}, false],
])('a container is created in a sandbox that is %s', async (_, ofSandbox, security, privileged) => {
  const runtime = await connected();
  answers['CreateContainer'] = { containerId: 'c1' };
  expect(await runtime.createContainer('s1', { ...sandbox, ...ofSandbox }, { ...container, security }, signal)).toBe(
    'c1',
  );
  const sandboxConfig = { linux: { securityContext: { privileged } } };
  expect(calls).toMatchObject([['CreateContainer', { podSandboxId: 's1', sandboxConfig }]]);
});

type Creation = (runtime: ContainerRuntime) => Promise<string>;
const CREATIONS: readonly [what: string, method: string, list: string, field: string, filter: object, Creation][] = [
  [
    'sandbox',
    'RunPodSandbox',
    'ListPodSandbox',
    'items',
    { id: '', labelSelector: { ...labels(2), ...scope } },
    (runtime) => runtime.runSandbox(sandbox, signal),
  ],
  [
    'container',
    'CreateContainer',
    'ListContainers',
    'containers',
    { id: '', podSandboxId: '', labelSelector: { ...labels(3, { [CONTAINER_NAME_LABEL]: 'app' }), ...scope } },
    (runtime) => runtime.createContainer('s1', sandbox, container, signal),
  ],
];

test.each(CREATIONS)(
  'the creation of a %s whose name is in use by an object of this instance returns that object',
  async (_, method, list, field, filter, create) => {
    const runtime = await connected();
    answers[list] = {
      [field]: [
        { id: 'other', labels: {} },
        { id: 'mine', labels: labels(0) },
      ],
    };
    for (const error of [
      failure('failed to reserve name "x": name "x" is reserved for "y"'),
      failure('the object already exists'),
      failure('that name is already in use'),
      failure('no', 'AlreadyExists'),
    ]) {
      calls = [];
      answers[method] = error;
      expect(await create(runtime)).toBe('mine');
      expect(calls.slice(1)).toEqual([[list, { filter }]]);
    }
  },
);

test.each(CREATIONS)(
  'the creation of a %s fails if its name is in use by no object that is listed, or for another reason',
  async (_, method, list, field, __, create) => {
    const runtime = await connected();
    answers[list] = { [field]: [{ id: 'other', labels: {} }] };
    answers[method] = failure('the object already exists');
    await expect(create(runtime)).rejects.toBe(answers[method]);
    calls = [];
    answers[method] = failure('no space left on device');
    await expect(create(runtime)).rejects.toBe(answers[method]);
    expect(calls.map(([name]) => name)).toEqual([method]);
  },
);

test.each([
  ['was cut before it had a process', 'failed to create containerd task: context canceled', true],
  ['failed', 'failed to create containerd task: no such file', false],
])(
  'the creation of a container whose name is in use by one whose start %s, with the message "%s", replaces it: %s',
  async (_, message, isReplaced) => {
    const runtime = await connected();
    const state = 'CONTAINER_EXITED';
    answers['ListContainers'] = { containers: [{ id: 'cut', state, labels: labels(3) }] };
    answers['ContainerStatus'] = { status: { state, startedAt: 0, message } };
    const created = [failure('that name is already in use'), { containerId: 'new' }];
    Object.defineProperty(answers, 'CreateContainer', { get: () => created.shift() });
    expect(await runtime.createContainer('s1', sandbox, container, signal)).toBe(isReplaced ? 'new' : 'cut');
    expect(calls.filter(([method]) => method === 'RemoveContainer')).toEqual(
      isReplaced ? [['RemoveContainer', { containerId: 'cut' }]] : [],
    );
  },
);

test('a start that fails has succeeded if the container has a start time', async () => {
  const runtime = await connected();
  await runtime.startContainer('c1', signal);
  expect(calls).toEqual([['StartContainer', { containerId: 'c1' }]]);
  answers['StartContainer'] = failure('container is already running');
  answers['ContainerStatus'] = { status: { startedAt: 1 } };
  await runtime.startContainer('c1', signal);
  expect(calls.slice(1)).toEqual([
    ['StartContainer', { containerId: 'c1' }],
    ['ContainerStatus', { containerId: 'c1' }],
  ]);
});

test.each([
  ['has no start time', { status: { startedAt: 0 } }],
  ['does not exist', failure('no such container', 'NotFound')],
  ['cannot be queried', failure('no')],
])('a start fails if the container %s', async (_, answer) => {
  const runtime = await connected();
  answers['StartContainer'] = failure('no command');
  answers['ContainerStatus'] = answer;
  await expect(runtime.startContainer('c1', signal)).rejects.toBe(answers['StartContainer']);
});

test('the outcome of a start is unknown if an earlier start of the container was cut', async () => {
  const runtime = await connected();
  const message = 'failed to create containerd task: task c1: already exists';
  answers['StartContainer'] = failure(message, 'AlreadyExists');
  answers['ContainerStatus'] = { status: { state: 'CONTAINER_EXITED', startedAt: 0, message } };
  const unknown = new OutcomeUnknownError(message, { cause: answers['StartContainer'] });
  await expect(runtime.startContainer('c1', signal)).rejects.toEqual(unknown);
});

test('the container is not queried after a start that was aborted', async () => {
  const runtime = await connected();
  answers['StartContainer'] = failure('no');
  answers['ContainerStatus'] = { status: { startedAt: 1 } };
  await expect(runtime.startContainer('c1', AbortSignal.abort())).rejects.toBe(answers['StartContainer']);
  expect(calls).toHaveLength(1);
});

test('the log of a container is reopened by one call', async () => {
  const runtime = await connected();
  await runtime.reopenContainerLog('c1', signal);
  expect(calls).toEqual([['ReopenContainerLog', { containerId: 'c1' }]]);
});
