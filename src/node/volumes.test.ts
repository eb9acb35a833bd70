import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { memoryBackend, silentLog, testTimers } from '../client/testing.ts';
import { inProcessClient } from '../client/typed-client.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { createPodMemory } from './volumes/pod-memory.ts';
import { createVolumeManager, type VolumeManager } from './volumes.ts';

const CONFIG_MAPS = { group: '', version: 'v1', resource: 'configmaps' };
let root: string;
let backend: ReturnType<typeof memoryBackend>;
let manager: VolumeManager;
let retried: string[];
let failures: string[];
let timers: ReturnType<typeof testTimers>;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'lifepod-volumes-'));
  backend = memoryBackend();
  retried = [];
  failures = [];
  timers = testTimers();
  manager = managerOf();
});
afterEach(async () => {
  manager.close();
  await rm(root, { recursive: true, force: true });
});

const managerOf = (): VolumeManager =>
  createVolumeManager({
    ...{ rootDirectory: join(root, 'pods'), memory: createPodMemory(join(root, 'memory'), AbortSignal.abort()) },
    ...{ client: inProcessClient(backend), nodeName: 'n' },
    ...{ timers, log: silentLog, onRetry: (uid) => retried.push(uid) },
    onFailure: (_, { message }) => failures.push(message),
  });
const write = (text: string): void => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf', namespace: 'a' }, data: { text } };
  backend.set(CONFIG_MAPS, object as KubeObject);
};
const podOf = (uid: string): Pod => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: uid, namespace: 'a', uid } },
  spec: { containers: [], volumes: [{ name: 'v', configMap: { name: 'conf' } }] },
});

it.each(['is cancelled', 'goes on'])(
  'of a Pod whose mount %s while it is removed nothing is written again',
  async (what) => {
    write('before');
    // What is there at the start is told of by then.
    await vi.waitFor(() => expect(backend.calls.some((call) => call.startsWith('watch configmaps'))).toBe(true));
    const mounting = new AbortController();
    const mounted = manager.mount(podOf('gone'), mounting.signal).catch(() => undefined);
    // It has begun, and makes the folder.
    await Promise.resolve();
    const removed = manager.remove('gone', new AbortController().signal);
    if (what === 'is cancelled') mounting.abort();
    await Promise.all([mounted, removed]);

    const other = podOf('other');
    await manager.mount(other, new AbortController().signal);
    const reads = () => backend.calls.filter((call) => call.startsWith('get configmaps')).length;
    const before = reads();
    write('after');
    const file = join(manager.hostPath('other', other, 'v'), 'text');
    await vi.waitFor(async () => expect(await readFile(file, 'utf8')).toBe('after'));
    expect([reads() - before, retried]).toEqual([1, []]);
  },
);

it('a new agent leaves a Pod the files that it has, though what they show is gone, and tries again', async () => {
  write('kept');
  const { signal } = new AbortController();
  const pod = podOf('left');
  await manager.mount(pod, signal);
  manager.close();
  backend.remove(CONFIG_MAPS, 'a', 'conf');
  const path = manager.hostPath('left', pod, 'v');
  // The last engine died between the swap of the content and this link to it.
  await rm(join(path, 'text'));
  manager = managerOf();
  await manager.mount(pod, signal);
  const text = (): Promise<string> => readFile(join(path, 'text'), 'utf8');
  expect(await text()).toBe('kept');
  expect(failures).toEqual(['MountVolume.SetUp failed for volume "v" : configmap "conf" not found']);

  timers.advance(30_000);
  await vi.waitFor(() => expect(failures).toHaveLength(2));
  write('again');
  await vi.waitFor(async () => expect(await text()).toBe('again'));
  // One that never had any waits for it.
  backend.remove(CONFIG_MAPS, 'a', 'conf');
  await expect(manager.mount(podOf('new'), signal)).rejects.toThrow('configmap "conf" not found');
});

const FIELDS = ['reason', 'deadline', 'containers'];
const items = FIELDS.map((field) => ({ path: field, fieldRef: { fieldPath: `status.termination.${field}` } }));
const endingPod = (uid: string, deadline?: string): Pod => ({
  ...podOf(uid),
  spec: { containers: [], volumes: [{ name: 'end', downwardAPI: { items } }] },
  ...(deadline === undefined
    ? {}
    : { status: { termination: { reason: 'Deleted', startedAt: deadline, deadline, containers: [] } } }),
});
const shown = (pod: Pod) => {
  const folder = manager.hostPath(pod.metadata.uid ?? '', pod, 'end');
  return Promise.all(FIELDS.map((field) => readFile(join(folder, field), 'utf8')));
};
it('a volume shows the termination of the Pod, empty before it, and follows the moves of the deadline', async () => {
  const pod = endingPod('ends');
  await manager.mount(pod, new AbortController().signal);
  expect(await shown(pod)).toEqual(['', '', '']);
  for (const deadline of ['2026-01-31T00:00:30.000000Z', '2026-01-31T00:00:40.000000Z']) {
    manager.update(endingPod('ends', deadline));
    await vi.waitFor(async () => expect(await shown(pod)).toEqual(['Deleted', deadline, '[]']));
  }
});

it('a rewrite is done when it resolves, and says so where no volume is mounted', async () => {
  const { signal } = new AbortController();
  const pod = endingPod('now', '2026-01-31T00:00:30.000000Z');
  await expect(manager.rewrite(pod, signal)).rejects.toThrow('the volumes of the Pod are not mounted');
  await manager.mount(endingPod('now'), signal);
  await manager.rewrite(pod, signal);
  expect(await shown(pod)).toEqual(['Deleted', '2026-01-31T00:00:30.000000Z', '[]']);
});
