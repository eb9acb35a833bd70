import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { createVolumeManager, type VolumeManager } from './volume-manager.ts';

let root: string;
let backend: RegistryBackend;
let manager: VolumeManager;
let retried: string[];
let failures: string[];
let timers: VirtualTimers;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'lifepod-volumes-'));
  backend = await registryBackend();
  retried = [];
  failures = [];
  timers = createVirtualTimers();
  manager = managerOf();
});
afterEach(async () => {
  manager.close();
  // manager.remove() also waits for writes under way.
  const { signal } = new AbortController();
  await Promise.all((await readdir(join(root, 'pods'))).map((uid) => manager.remove(uid, signal)));
  await rm(root, { recursive: true, force: true });
});

const managerOf = (): VolumeManager =>
  createVolumeManager({
    client: clientOf(backend),
    timers,
    log: silentLog,
    rootDirectory: join(root, 'pods'),
    memory: { directory: (uid) => join(root, 'memory', uid), ready: async () => {} },

    nodeName: 'n',

    onRetry: (uid) => retried.push(uid),
    onFailure: (_, { message }) => failures.push(message),
  });
const write = async (text: string): Promise<void> => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf', namespace: 'a' }, data: { text } };
  await backend.set(CONFIG_MAPS, object as KubeObject);
};
/** Resolves when the objects have been listed, so that the volumes are only rewritten for later changes. */
async function following(...keys: string[]): Promise<void> {
  const followed = new Set(keys.length === 0 ? ['configmaps/a/conf'] : keys);
  manager.objects.follow('test', followed);
  const watches = (): string[] => backend.calls.filter((call) => call.startsWith('watch '));
  await vi.waitFor(() => expect(watches()).toHaveLength(followed.size));
}
const podOf = (uid: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: uid, namespace: 'a', uid },
  spec: { containers: [], volumes: [{ name: 'v', configMap: { name: 'conf' } }] },
});

it.each(['is aborted', 'continues'])(
  'the volume manager writes nothing for a Pod that is removed while its mount %s',
  async (what) => {
    await write('before');
    await following();
    const mounting = new AbortController();
    const mounted = manager.mount(podOf('gone'), mounting.signal).catch(() => undefined);
    // By now, mount() has started to create the folder.
    await Promise.resolve();
    const removed = manager.remove('gone', new AbortController().signal);
    if (what === 'is aborted') mounting.abort();
    await Promise.all([mounted, removed]);

    const other = podOf('other');
    await manager.mount(other, new AbortController().signal);
    const reads = () => backend.calls.filter((call) => call.startsWith('get configmaps')).length;
    const before = reads();
    await write('after');
    const file = join(manager.hostPath('other', other, 'v'), 'text');
    await vi.waitFor(async () => expect(await readFile(file, 'utf8')).toBe('after'));
    expect([reads() - before, retried]).toEqual([1, []]);
  },
);

it('a new agent keeps the files of a Pod whose ConfigMap was deleted, and retries the update', async () => {
  await write('kept');
  const { signal } = new AbortController();
  const pod = podOf('left');
  await manager.mount(pod, signal);
  manager.close();
  await backend.remove(CONFIG_MAPS, 'a', 'conf');
  const path = manager.hostPath('left', pod, 'v');
  // The previous engine died after it swapped the content and before it created this link.
  await rm(join(path, 'text'));
  manager = managerOf();
  await manager.mount(pod, signal);
  const text = (): Promise<string> => readFile(join(path, 'text'), 'utf8');
  expect(await text()).toBe('kept');
  expect(failures).toEqual(['MountVolume.SetUp failed for volume "v" : configmap "conf" not found']);

  timers.advance(30_000);
  await vi.waitFor(() => expect(failures).toHaveLength(2));
  await write('again');
  await vi.waitFor(async () => expect(await text()).toBe('again'));
  // A Pod whose volume was never written waits for the ConfigMap.
  await backend.remove(CONFIG_MAPS, 'a', 'conf');
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
  const folder = manager.hostPath(uidOf(pod), pod, 'end');
  return Promise.all(FIELDS.map((field) => readFile(join(folder, field), 'utf8')));
};
it('the volume manager updates the fields of the termination, which are empty before it, when its deadline moves', async () => {
  const pod = endingPod('ends');
  await manager.mount(pod, new AbortController().signal);
  expect(await shown(pod)).toEqual(['', '', '']);
  for (const deadline of ['2026-01-31T00:00:30.000000Z', '2026-01-31T00:00:40.000000Z']) {
    manager.update(endingPod('ends', deadline));
    await vi.waitFor(async () => expect(await shown(pod)).toEqual(['Deleted', deadline, '[]']));
  }
});

it('rewrite() resolves when the files are written and rejects if the volumes are not mounted', async () => {
  const { signal } = new AbortController();
  const pod = endingPod('now', '2026-01-31T00:00:30.000000Z');
  await expect(manager.rewrite(pod, signal)).rejects.toThrow('the volumes of the Pod are not mounted');
  await manager.mount(endingPod('now'), signal);
  await manager.rewrite(pod, signal);
  expect(await shown(pod)).toEqual(['Deleted', '2026-01-31T00:00:30.000000Z', '[]']);
});

it('the volume manager replaces a token on time after another volume was rewritten', async () => {
  const { signal } = new AbortController();
  let tokens = 0;
  backend.create = async (_, __, object) => ({ ...object, status: { token: `token-${++tokens}` } }) as KubeObject;
  const withToken = (deadline?: string): Pod => {
    const pod = endingPod('renewed', deadline);
    const token = { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } };
    return { ...pod, spec: { containers: [], volumes: [...(pod.spec?.volumes ?? []), token] } };
  };
  await manager.mount(withToken(), signal);
  const pod = withToken('2026-01-31T00:00:30.000000Z');
  await manager.rewrite(pod, signal);
  timers.advance(3_000_000);
  const file = join(manager.hostPath('renewed', pod, 'token'), 'token');
  await vi.waitFor(async () => expect(await readFile(file, 'utf8')).toBe('token-2'));
});

const ITEMS = 100;
const annotated = (texts: Record<string, string>, ...volumes: string[]): Pod => ({
  ...podOf('large'),
  metadata: { ...podOf('large').metadata, annotations: texts },
  spec: {
    containers: [],
    volumes: volumes.map((name) => {
      const fieldRef = { fieldPath: `metadata.annotations['${name}']` };
      const items = Array.from({ length: ITEMS }, (_, index) => ({ path: `${name}${index}`, fieldRef }));
      return { name, projected: { sources: [{ downwardAPI: { items } }, { configMap: { name: 'conf' } }] } };
    }),
  },
});
const LARGE = 'x'.repeat(100_000);
const TOO_LARGE = 'x'.repeat(250_000);
const lengths = (pod: Pod) =>
  Promise.all(
    (pod.spec?.volumes ?? []).map(async ({ name }) => {
      const files = await readdir(manager.hostPath('large', pod, name));
      expect(files.filter((file) => file.startsWith(name))).toHaveLength(ITEMS);
      return (await stat(join(manager.hostPath('large', pod, name), `${name}0`))).size;
    }),
  );

it('a volume that a change makes too large keeps its files and is not read again before the next change', async () => {
  const { signal } = new AbortController();
  await write('before');
  await following();
  await manager.mount(annotated({ a: '' }, 'a'), signal);
  const pod = annotated({ a: TOO_LARGE }, 'a');
  manager.update(pod);
  await vi.waitFor(() => expect(failures).toEqual([expect.stringContaining('may show at most 16 MiB')]));
  expect(await lengths(pod)).toEqual([0]);
  const reads = () => backend.calls.filter((call) => call.startsWith('get configmaps')).length;
  const before = reads();
  timers.advance(30_000);
  // mount() also waits for operations that the timer started.
  await manager.mount(pod, signal);
  expect(reads() - before).toBe(1);

  manager.update(annotated({ a: 'small' }, 'a'));
  await vi.waitFor(async () => expect(await lengths(pod)).toEqual(['small'.length]));
});

it('the volume manager counts the kept files of a volume whose update failed', async () => {
  const { signal } = new AbortController();
  await write('before');
  await manager.mount(annotated({ a: LARGE, b: '' }, 'a', 'b'), signal);
  await backend.remove(CONFIG_MAPS, 'a', 'conf');
  const both = annotated({ a: LARGE, b: LARGE }, 'a', 'b');
  await manager.rewrite(both, signal);
  expect(await lengths(both)).toEqual([LARGE.length, 0]);
});

it('the volume manager retries a volume that was too large once another volume has become smaller', async () => {
  const set = async (name: string, text: string): Promise<void> => {
    const data = { key: Buffer.from(text).toString('base64') };
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'a' }, data };
    await backend.set({ ...CONFIG_MAPS, resource: 'secrets' }, object as KubeObject);
  };
  const volumes = ['a', 'b'].map((name) => {
    const items = Array.from({ length: ITEMS }, (_, index) => ({ path: `${name}${index}`, key: 'key' }));
    return { name, secret: { secretName: name, items } };
  });
  const pod: Pod = { ...podOf('large'), spec: { containers: [], volumes } };
  const refused = (times: number) =>
    vi.waitFor(() =>
      expect(failures).toEqual(Array.from({ length: times }, () => expect.stringContaining('at most 16 MiB'))),
    );
  await set('a', '');
  await set('b', LARGE);
  await following('secrets/a/a', 'secrets/a/b');
  await manager.mount(pod, new AbortController().signal);
  await set('a', LARGE);
  await refused(1);
  // The next update processes volume a first, while volume b still counts with its old size.
  await set('b', '');
  await refused(2);
  expect((await lengths(pod))[0]).toBe(0);
  await vi.waitFor(async () => {
    timers.advance(30_000);
    expect(await lengths(pod)).toEqual([LARGE.length, 0]);
  });
});
