import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { containerOf, deferOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, Secret } from '../../api/generated/types.ts';
import { CONFIG_MAPS, SECRETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { createEnvironmentSource } from '../container/configuration-source.ts';
import { createPodImagePull } from '../images/pod-images.ts';
import type { FollowedObjects } from '../volumes/followed-objects.ts';
import { fileSourceKey } from '../volumes/references.ts';
import { createKeptReferences, type KeptReferences } from './kept-references.ts';

const { signal } = new AbortController();
let root: string;
let backend: RegistryBackend;
let timers: VirtualTimers;
let kept: KeptReferences;
const followed = new Map<string, ReadonlySet<string>>();
const objects: FollowedObjects = {
  follow: (owner, keys) => void followed.set(owner, keys),
  unfollow: (owner) => void followed.delete(owner),
};

const keptOf = (isStatic = false): KeptReferences =>
  createKeptReferences({
    client: clientOf(backend),
    objects,
    timers,
    log: silentLog,
    signal,
    isStatic: () => isStatic,
    podDirectory: (uid) => join(root, uid),
    memory: { directory: (uid) => join(root, 'memory', uid), ready: async () => undefined },
  });
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'lifepod-kept-'));
  backend = await registryBackend();
  timers = createVirtualTimers();
  kept = keptOf();
});
// A copy in progress may add a file while the folder is removed, so the removal is retried.
afterEach(() => rm(root, { recursive: true, force: true, maxRetries: 5 }));

const write = async (
  kind: 'ConfigMap' | 'Secret',
  name: string,
  data: Record<string, string>,
  type?: string,
): Promise<void> => {
  const object = { apiVersion: 'v1', kind, metadata: { name, namespace: 'default' }, data, type };
  await backend.set(kind === 'Secret' ? SECRETS : CONFIG_MAPS, object as KubeObject);
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');

const entry = deferOf('entry', {
  envFrom: [{ configMapRef: { name: 'settings' } }],
  env: [{ name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'database', key: 'password' } } }],
});
const app = containerOf('app', { envFrom: [{ configMapRef: { name: 'of-the-app' } }] });
const pod = podOf({ containers: [app], deferContainers: [entry], imagePullSecrets: [{ name: 'registry' }] });

const writeAll = async (): Promise<void> => {
  await write('ConfigMap', 'settings', { HOST: 'db' });
  await write('ConfigMap', 'of-the-app', { COLOUR: 'green' });
  await write('Secret', 'database', { password: base64('first') });
  const credentials = base64('{"auths":{"r.io":{"username":"u","password":"p"}}}');
  await write('Secret', 'registry', { '.dockerconfigjson': credentials }, 'kubernetes.io/dockerconfigjson');
};
const removeAll = async (): Promise<void> => {
  for (const name of ['settings', 'of-the-app']) await backend.remove(CONFIG_MAPS, 'default', name);
  for (const name of ['database', 'registry']) await backend.remove(SECRETS, 'default', name);
};
const environment = (references = kept) =>
  createEnvironmentSource({
    client: clientOf(backend),
    kept: references,
    isStatic: () => false,
    nodeName: 'n',
    hostIps: [],
    allocatable: {},
    memoryCapacityBytes: 1,
    clusterDns: [],
    clusterDomain: 'c',
    resolvConf: '/dev/null',
    logsRoot: '/l',
    seccompRoot: '/s',
    podIps: () => [],
    volumePath: () => '/v',
    services: { synced: Promise.resolve(), list: () => [] },
    podDirectory: () => '/p',
  });
const passwordOf = (secret: Secret | undefined): string =>
  Buffer.from(secret?.data?.['password'] ?? '', 'base64').toString();

it('a defer container finds referenced objects that were deleted after the app container started', async () => {
  await writeAll();
  await environment()(pod, app, signal);
  await removeAll();
  const env = await environment()(pod, entry, signal);
  expect(env.configMap('settings')?.data).toEqual({ HOST: 'db' });
  expect(passwordOf(env.secret('database'))).toBe('first');
  // A new agent also finds the copies.
  const next = await environment(keptOf())(pod, entry, signal);
  expect(passwordOf(next.secret('database'))).toBe('first');
});

it('after a reboot, a defer container gets a Secret from the API, and does not find a Secret that was deleted', async () => {
  await writeAll();
  await environment()(pod, app, signal);
  const reboot = () => rm(join(root, 'memory', 'u1', 'kept', 'secrets'), { recursive: true });
  await reboot();
  await write('Secret', 'database', { password: base64('second') });
  expect(passwordOf((await environment(keptOf())(pod, entry, signal)).secret('database'))).toBe('second');
  await reboot().catch(() => undefined);
  await removeAll();
  const gone = await environment(keptOf())(pod, entry, signal);
  expect(gone.secret('database')).toBeUndefined();
  // Copies of ConfigMaps are on disk and survive the reboot.
  expect(gone.configMap('settings')?.data).toEqual({ HOST: 'db' });
});

it('an app container does not get the copies of referenced objects', async () => {
  await writeAll();
  const own = containerOf('app', { envFrom: [{ configMapRef: { name: 'settings' } }] });
  const both = { ...pod, spec: { ...pod.spec, containers: [own] } };
  await environment()(both, own, signal);
  await removeAll();
  expect((await environment()(both, own, signal)).configMap('settings')).toBeUndefined();
});

it('only objects that defer containers refer to are kept, readable by root alone, and Secrets in memory', async () => {
  await writeAll();
  await kept.keep(pod);
  const filesOf = async (folder: string): Promise<string[]> => {
    const files = await readdir(folder, { recursive: true });
    for (const file of files) expect((await stat(join(folder, file))).mode & 0o077).toBe(0);
    return files.sort();
  };
  expect(await filesOf(join(root, 'u1/kept'))).toEqual(['configmaps', 'configmaps/settings']);
  expect(await filesOf(join(root, 'memory/u1/kept'))).toEqual(['secrets', 'secrets/database', 'secrets/registry']);
});

it('a copy of a referenced object is updated when the object changes, and is kept when the object is deleted', async () => {
  await writeAll();
  await kept.keep(pod);
  await write('Secret', 'database', { password: base64('second') });
  const key = fileSourceKey('secrets', 'default', 'database');
  kept.changed(key);
  const found = async () => passwordOf(await kept.find<Secret>(pod, 'secrets', 'database'));
  await vi.waitFor(async () => expect(await found()).toBe('second'));
  await backend.remove(SECRETS, 'default', 'database');
  const reads = backend.calls.length;
  kept.changed(key);
  await vi.waitFor(() => expect(backend.calls.length).toBeGreaterThan(reads));
  expect(await found()).toBe('second');
});

it('the copy of an object that could not be read when the app container started is retried', async () => {
  await writeAll();
  backend.failNext('get configmaps default/settings', serviceUnavailable('not now'));
  await kept.keep(pod);
  timers.advance(60_000);
  await vi.waitFor(async () => expect(await kept.find(pod, 'configmaps', 'settings')).toBeDefined());
});

it('the image of a defer container is pulled with a pull secret that was deleted', async () => {
  await writeAll();
  await kept.keep(pod);
  await removeAll();
  const asked: unknown[] = [];
  const warnings: string[] = [];
  const pull = createPodImagePull({
    client: clientOf(backend),
    kept,
    warn: (_pod, reason) => warnings.push(reason),
    puller: {
      async pull(_reference, credentials) {
        asked.push(credentials);
        return { info: { id: 'i', tags: [], digests: [], sizeBytes: 1 }, millis: 1 };
      },
    },
  });
  await pull(pod, 'r.io/tools:1', () => undefined, signal);
  expect(asked).toEqual([[{ username: 'u', password: 'p' }]]);
  expect(warnings).toEqual([]);
});

it('no copy is written for a removed Pod, and nothing is read for a static Pod or a Pod without defer containers', async () => {
  await writeAll();
  const removed: string[] = [];
  const volumes = kept.guard({
    mount: async () => undefined,
    rewrite: async () => undefined,
    unmount: async () => undefined,
    async remove(uid) {
      removed.push(uid);
    },
  });
  const keeping = kept.keep(pod);
  await volumes.remove('u1', signal);
  await keeping;
  await rm(join(root, 'u1'), { recursive: true, force: true });
  kept.changed(fileSourceKey('secrets', 'default', 'database'));
  await mkdir(join(root, 'u1'));
  const before = backend.calls.length;
  await keptOf(true).keep(pod);
  await kept.keep({ ...pod, spec: { containers: [app] } } as Pod);
  expect(removed).toEqual(['u1']);
  expect([backend.calls.length - before, await readdir(join(root, 'u1'))]).toEqual([0, []]);
});

it('the search for a copy finds nothing for a name that points outside the folder', async () => {
  await writeAll();
  await kept.keep(pod);
  expect(await readFile(join(root, 'u1/kept/configmaps/settings'), 'utf8')).toContain('db');
  for (const name of ['../configmaps/settings', '..', '.', ''])
    expect(await kept.find(pod, 'secrets', name)).toBeUndefined();
});
