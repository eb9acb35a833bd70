import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { memoryBackend, silentLog, testTimers } from '../client/testing.ts';
import { inProcessClient } from '../client/typed-client.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { createVolumeManager, type VolumeManager } from './volumes.ts';

const CONFIG_MAPS = { group: '', version: 'v1', resource: 'configmaps' };
let root: string;
let backend: ReturnType<typeof memoryBackend>;
let manager: VolumeManager;
let retried: string[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'lifepod-volumes-'));
  backend = memoryBackend();
  retried = [];
  manager = createVolumeManager({
    ...{ rootDirectory: join(root, 'pods'), client: inProcessClient(backend), nodeName: 'n' },
    ...{ timers: testTimers(), log: silentLog, onRetry: (uid) => retried.push(uid) },
  });
});
afterEach(async () => {
  manager.close();
  await rm(root, { recursive: true, force: true });
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
