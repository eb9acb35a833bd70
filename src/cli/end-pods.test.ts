import { expect, test, vi } from 'vitest';
import type { Node, Pod } from '../api/generated/types.ts';
import { NODES, PODS } from '../api/resources.ts';
import { registryBackend } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { type ApiError, forbidden, insufficientStorage } from '../machinery/status.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { createSimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { createEndReports, endAllPods, removeRest, runtimeIdle } from './end-pods.ts';

const ending = async (failure: ApiError) => {
  const backend = await registryBackend();
  const metadata = { name: 'web', namespace: 'default' };
  const spec = { containers: [{ name: 'app', image: 'x' }] };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  backend.failNext('delete pods', failure);
  const said: string[] = [];
  const platform = { timers: systemTimers(), log: silentLog };
  const { signal } = new AbortController();
  return { said, ended: endAllPods(clientOf(backend), platform, 'n', (line) => said.push(line), signal) };
};

test('endAllPods retries a delete that fails because the disk is full', async () => {
  const { said, ended } = await ending(insufficientStorage('the disk is full'));
  await ended;
  expect(said).toEqual([
    'ending default/web (grace 30 s)',
    '  default/web cannot be deleted yet: the disk is full; retrying',
    expect.stringMatching(/^ended default\/web after /),
  ]);
});

test('endAllPods fails if the API refuses a delete permanently', async () => {
  const { ended } = await ending(forbidden(PODS, 'web', 'no'));
  await expect(ended).rejects.toThrow('no');
});

test('endAllPods removes a Pod of another node at once, because no agent of this engine ends it', async () => {
  const backend = await registryBackend();
  const metadata = { name: 'web', namespace: 'default' };
  const spec = { nodeName: 'far', containers: [{ name: 'app', image: 'x' }] };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const said: string[] = [];
  const platform = { timers: systemTimers(), log: silentLog };
  await endAllPods(clientOf(backend), platform, 'n', (line) => said.push(line), new AbortController().signal);
  expect(said).toEqual([
    'removing default/web, which is bound to the node far; this engine runs n',
    expect.stringMatching(/^ended default\/web after /),
  ]);
});

test('endAllPods says once which defer containers did not do their work', async () => {
  const backend = await registryBackend();
  const metadata = { name: 'web', namespace: 'default' };
  const containers = [{ name: 'app', image: 'x' }];
  const deferContainers = ['save', 'bye'].map((name) => ({ name, image: 'x', timeoutSeconds: 2 }));
  const spec = { nodeName: 'n', containers, deferContainers };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const said: string[] = [];
  const platform = { timers: systemTimers(), log: silentLog };
  const say = (line: string) => void said.push(line);
  const ended = endAllPods(clientOf(backend), platform, 'n', say, new AbortController().signal);
  await vi.waitFor(() => expect(backend.objects(PODS)[0]?.metadata.deletionTimestamp).toBeDefined());
  const statusOf = (name: string, exitCode: number, reason: string) => ({
    ...{ name, image: 'x', imageID: '', ready: false, restartCount: 0, containerID: 'containerd://1' },
    state: {
      terminated: {
        exitCode,
        reason,
        message: 'disk full\n',
        containerID: 'containerd://1',
        startedAt: '2026-01-01T00:00:00Z',
      },
    },
  });
  const failed = statusOf('save', 9, 'Error');
  for (const deferContainerStatuses of [[failed], [failed, statusOf('bye', 0, 'Completed')]])
    await clientOf(backend)
      .resource<Pod>(PODS)
      .patch('web', 'default', 'application/merge-patch+json', { status: { deferContainerStatuses } }, 'status');
  await vi.waitFor(() => expect(said.join()).toMatch(/save/));
  await backend.remove(PODS, 'default', 'web');
  await ended;
  expect(said).toEqual([
    'ending default/web (grace 30 s)',
    '  default/web: defer container save failed: exit code 9 (Error): disk full; do by hand what save would have done',
    expect.stringMatching(/^ended default\/web after /),
  ]);
});

test.each([
  [undefined, 60],
  [5, 5],
  [90, 90],
])('endAllPods with the grace period %j gives a Pod %d s', async (gracePeriodSeconds, expected) => {
  const backend = await registryBackend();
  const metadata = { name: 'web', namespace: 'default' };
  const containers = [{ name: 'app', image: 'x' }];
  await backend.set<Pod>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { nodeName: 'n', containers, terminationGracePeriodSeconds: 60 },
  });
  const said: string[] = [];
  const platform = { timers: systemTimers(), log: silentLog };
  const { signal } = new AbortController();
  const say = (line: string) => void said.push(line);
  const ended = endAllPods(clientOf(backend), platform, 'n', say, signal, { gracePeriodSeconds });
  await vi.waitFor(() => expect(backend.objects(PODS)[0]?.metadata.deletionGracePeriodSeconds).toBe(expected));
  await backend.remove(PODS, 'default', 'web');
  await ended;
  // A user who has set the grace period needs no hint.
  const hint = 'waiting up to 60 s: to end them sooner, press Ctrl+C, and type the command again with --now';
  expect(said).toEqual([
    `ending default/web (grace ${expected} s)`,
    ...(gracePeriodSeconds === undefined ? [hint] : []),
    expect.stringMatching(/^ended default\/web after /),
  ]);
});

test.each([
  [undefined, 12_500, 'default/web is already ending (13 s left)'],
  [90, 12_500, 'default/web is already ending (13 s left)'],
  [5, 12_500, 'ending default/web (grace 5 s)'],
  [undefined, -500, 'default/web is already ending'],
])(
  'endAllPods with the grace period %j, for a Pod whose deadline is in %i ms, says "%s"',
  async (seconds, millis, line) => {
    const backend = await registryBackend();
    const pods = clientOf(backend).resource<Pod>(PODS);
    const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }], terminationGracePeriodSeconds: 60 };
    await backend.set<Pod>(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'default' },
      spec,
    });
    await pods.delete('web', 'default', { gracePeriodSeconds: 15 });
    const timers = createVirtualTimers(
      Date.parse((await pods.get('web', 'default')).metadata.deletionTimestamp ?? '') - millis,
    );
    const said: string[] = [];
    const platform = { timers, log: silentLog };
    const say = (text: string) => void said.push(text);
    const ended = endAllPods(clientOf(backend), platform, 'n', say, new AbortController().signal, {
      gracePeriodSeconds: seconds,
    });
    await vi.waitFor(() => expect(said).toEqual([line]));
    await backend.remove(PODS, 'default', 'web');
    await ended;
  },
);

test('endAllPods does not call a Pod already ending that the engine ends since the command began', async () => {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const metadata = { name: 'static-n', namespace: 'default' };
  const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }], terminationGracePeriodSeconds: 60 };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const said: string[] = [];
  const say = (text: string) => void said.push(text);
  const reports = createEndReports('n', say, timers.now());
  await clientOf(backend).resource<Pod>(PODS).delete('static-n', 'default', {});
  timers.advance(5000);
  const platform = { timers, log: silentLog };
  const ended = endAllPods(clientOf(backend), platform, 'n', say, new AbortController().signal, { reports });
  await vi.waitFor(() => expect(said[0]).toBe('ending default/static-n (grace 60 s)'));
  await backend.remove(PODS, 'default', 'static-n');
  await ended;
});

test('endAllPods reports the turn of each defer container, whatever the phase of the Pod', async () => {
  const backend = await registryBackend();
  const metadata = { name: 'web', namespace: 'default' };
  const image = 'x';
  const spec = { nodeName: 'n', containers: [{ name: 'app', image }], deferContainers: [{ name: 'bye', image }] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec } as Pod;
  await backend.set(PODS, pod);
  const said: string[] = [];
  const heard = (text: string) => vi.waitFor(() => expect(said.join()).toContain(text));
  const { signal } = new AbortController();
  const platform = { timers: systemTimers(), log: silentLog };
  const ended = endAllPods(clientOf(backend), platform, 'n', (line) => said.push(line), signal);
  await heard('ending default/web');
  const termination = { reason: 'Deleted', startedAt: '2026-01-31T00:00:00Z', deadline: '2026-01-31T00:00:30Z' };
  const bye = { name: 'bye', image, imageID: '', ready: false, restartCount: 0, state: { running: {} } };
  const status = { phase: 'Running', termination, deferContainerStatuses: [bye] } as Pod['status'];
  await vi.waitFor(() => expect(backend.objects(PODS)[0]?.metadata.deletionTimestamp).toBeDefined());
  await backend.set<Pod>(PODS, { ...(backend.objects(PODS)[0] as Pod), status });
  await heard('  default/web: defer container bye (1 of 1)');
  await backend.remove(PODS, 'default', 'web');
  await ended;
});

test('endAllPods reports how many Pods it waits for, how long at most, and the last ones by name', async () => {
  const backend = await registryBackend();
  for (const [name, terminationGracePeriodSeconds] of [
    ['long', 60],
    ['short', 5],
  ] as const) {
    const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }], terminationGracePeriodSeconds };
    await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec });
  }
  const said: string[] = [];
  const platform = { timers: systemTimers(), log: silentLog };
  const { signal } = new AbortController();
  const ended = endAllPods(clientOf(backend), platform, 'n', (line) => said.push(line), signal);
  await vi.waitFor(() =>
    expect(said).toContain(
      'waiting for 2 Pods, whose longest grace period is 60 s: to end them sooner, press Ctrl+C, and type the command again with --now',
    ),
  );
  for (const name of ['short', 'long']) await backend.remove(PODS, 'default', name);
  await ended;
  expect(said.slice(-2)).toEqual([
    expect.stringMatching(/^ended default\/short after \S+ s; waiting for default\/long$/),
    expect.stringMatching(/^ended default\/long after \S+ s$/),
  ]);
});

test('endAllPods reports once that the container runtime does not answer, and when it answers again', async () => {
  const backend = await registryBackend();
  const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] };
  await backend.set<Pod>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec,
  });
  const nodeWith = (status: string, message: string): Node => {
    const conditions = [{ type: 'Ready', status, reason: 'r', message }];
    return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { conditions } };
  };
  const said: string[] = [];
  const heard = (text: string) => vi.waitFor(() => expect(said.join()).toContain(text));
  const { signal } = new AbortController();
  const platform = { timers: systemTimers(), log: silentLog };
  const ended = endAllPods(clientOf(backend), platform, 'n', (line) => said.push(line), signal);
  const why = 'container runtime is down: rpc error: code = Unavailable desc = connect ENOENT /c.sock';
  await backend.set<Node>(NODES, nodeWith('False', why));
  await heard('waiting: container runtime is down: connect ENOENT /c.sock');
  await backend.set<Node>(NODES, nodeWith('False', `${why} again`));
  await backend.set<Node>(NODES, nodeWith('Unknown', 'the node does not report its status'));
  await backend.set<Node>(NODES, nodeWith('False', why));
  await backend.set<Node>(NODES, nodeWith('True', ''));
  await heard('the container runtime answers again');
  await backend.remove(PODS, 'default', 'web');
  await ended;
  expect(said.filter((line) => line.includes('runtime'))).toHaveLength(2);
});

const sandboxOf = (name: string) => ({
  pod: { uid: name, namespace: 'default', name },
  attempt: 0,
  hostname: name,
  logDirectory: '/none',
  labels: {},
  annotations: {},
});

test('runtimeIdle waits for the containers of Pods that have been deleted, and reports that after a second', async () => {
  const { signal } = new AbortController();
  const runtime = createSimulatedRuntime({ timers: systemTimers(), script: () => ({ stopMillis: 1 }) });
  const sandbox = await runtime.runSandbox(sandboxOf('left'), signal);
  const timers = createVirtualTimers();
  const said: string[] = [];
  const observed = vi.spyOn(runtime, 'observeAll');
  const idle = runtimeIdle(runtime, timers, (line) => said.push(line), signal);
  await observed.mock.results[0]?.value;
  await new Promise(setImmediate);
  timers.advance(999);
  expect(said).toEqual([]);
  timers.advance(1);
  expect(said).toEqual(['waiting for containers of a Pod that does not exist any more']);
  await runtime.stopSandbox(sandbox, signal);
  await idle;
  timers.advance(60_000);
  expect(said).toHaveLength(1);
});

test('removeRest removes all sandboxes from the runtime, running or stopped', async () => {
  const { signal } = new AbortController();
  const runtime = createSimulatedRuntime({ timers: systemTimers(), script: () => ({ stopMillis: 1 }) });
  const sandboxes = ['running', 'stopped'].map((name) => runtime.runSandbox(sandboxOf(name), signal));
  const [, stopped] = await Promise.all(sandboxes);
  await runtime.stopSandbox(stopped as string, signal);
  expect(await removeRest(runtime, signal)).toBe(2);
  expect(await runtime.observeAll(signal)).toEqual(new Map());
  expect(await removeRest(runtime, signal)).toBe(0);
});
