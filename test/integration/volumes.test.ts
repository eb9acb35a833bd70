import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  statfs,
  symlink,
  watch,
  writeFile,
} from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type {
  Container,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSpec,
  Pod,
} from '../../src/api/generated/types.ts';
import { coreResource } from '../../src/api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { formatTime } from '../../src/machinery/time.ts';
import type { PodEnvironment } from '../../src/node/container/container-config.ts';
import { prepareContainer } from '../../src/node/container/container-files.ts';
import type { VolumeImages } from '../../src/node/volumes/image.ts';
import { createLocalFolders } from '../../src/node/volumes/local-folders.ts';
import { bindMount, isMountPoint, mountsUnder, mountTmpfs, unmountUnder } from '../../src/node/volumes/mounts.ts';
import { createPodMemory } from '../../src/node/volumes/pod-memory.ts';
import {
  createVolumeManager,
  type VolumeManager,
  type VolumeManagerOptions,
} from '../../src/node/volumes/volume-manager.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { removeTree } from '../../src/platform/remove-tree.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../src/platform/virtual-timers.ts';

const ref = (resource: string) => coreResource(resource);
const { signal } = new AbortController();
const TMPFS_MAGIC = 0x01021994;

let root: string;
let timers: VirtualTimers;
let backend: RegistryBackend;
let manager: VolumeManager;
let tokens: { request: KubeObject; account: string }[];
let retried: PromiseWithResolvers<string>;
let failures: string[];
/** Resolves when a followed ConfigMap or Secret was reported for the first time. */
let followed: PromiseWithResolvers<void>;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'lifepod-volumes-'));
  timers = createVirtualTimers();
  backend = await registryBackend({ timers, namespaces: ['ns1'] });
  tokens = [];
  retried = Promise.withResolvers();
  failures = [];
  followed = Promise.withResolvers();
  const create = backend.create.bind(backend);
  backend.create = async (resource, namespace, object, options) => {
    if (options?.subresource !== 'token') return create(resource, namespace, object, options);
    tokens.push({ request: object, account: `${namespace}/${options.name}` });
    const expirationTimestamp = formatTime(timers.now() + 1000 * 1000);
    return { ...object, status: { token: `token-${tokens.length}`, expirationTimestamp } } as KubeObject;
  };
  manager = managerOf();
});
afterEach(async () => {
  // Operations of a Pod are serial, so an update after the first report of a mounted ConfigMap has ended when unmount() has ended.
  await manager.unmount('u-1', signal).catch(() => undefined);
  manager.close();
  await unmountUnder(root, signal);
  await rm(root, { recursive: true, force: true });
});

const managerOf = (more: Partial<VolumeManagerOptions> = {}): VolumeManager =>
  createVolumeManager({
    ...withInformers({ client: clientOf(backend), timers, log: silentLog }),
    rootDirectory: join(root, 'pods'),
    memory: createPodMemory(join(root, 'memory'), signal),

    nodeName: 'n1',
    allocatable: { cpu: '4' },
    onRetry: (uid) => retried.resolve(uid),
    onFailure: (_, error) => failures.push(error.message),
    onObject: () => followed.resolve(),
    ...more,
  });

/** Waits until the update after the first report of the ConfigMap has ended. */
async function mountAndFollow(pod: Pod): Promise<void> {
  await manager.mount(pod, signal);
  await followed.promise;
  await manager.mount(pod, signal); // Ends after the update, because operations of a Pod are serial.
}

const podOf = (spec: Partial<Pod['spec']>): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p1', namespace: 'ns1', uid: 'u-1', labels: { b: '2', a: 'one "x"' } },
    spec: { containers: [{ name: 'c' }], serviceAccountName: 'robot', ...spec },
  }) as Pod;
const mode = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);
const configMap = (data: Record<string, string>): KubeObject =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf', namespace: 'ns1' }, data }) as KubeObject;

const accountVolume = {
  name: 'kube-api-access',
  projected: {
    defaultMode: 0o644,
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
    ],
  },
};
const rootCa = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kube-root-ca.crt', namespace: 'ns1' },
  data: { 'ca.crt': 'CERT' },
} as KubeObject;

describe('a folder that containers write to', () => {
  it("removing a tree that containers write to fails at a mount in it, and keeps the mount's content", async () => {
    const inner = join(root, 'tree/a/inner');
    await mkdir(inner, { recursive: true });
    await mountTmpfs(inner, [], signal);
    await writeFile(join(inner, 'precious'), '');
    await expect(removeTree(join(root, 'tree'))).rejects.toThrow('inner');
    expect(await readdir(inner)).toEqual(['precious']);
  });

  it('the folder of a local volume is not removed while it or a part of it is mounted somewhere', async () => {
    const folders = createLocalFolders(root, 'n1');
    for (const name of ['v', 'v2']) await folders.create(name);
    const target = join(root, 'target');
    for (const source of [folders.path('v'), join(folders.path('v'), 'with space')]) {
      for (const folder of [source, target]) await mkdir(folder, { recursive: true });
      await bindMount(source, target, signal);
      await expect(folders.remove('v')).rejects.toThrow(`it is mounted at ${target}`);
      await unmountUnder(target, signal);
    }
    await bindMount(folders.path('v2'), target, signal);
    await folders.remove('v');
    expect(await readdir(join(root, 'volumes'))).toEqual(['v2']);
    await folders.remove('v');
  });
});

describe('emptyDir', () => {
  it('an emptyDir is a folder for everyone, and keeps its content when mounted again', async () => {
    const pod = podOf({ volumes: [{ name: 'data', emptyDir: {} }] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'data');
    expect(path).toBe(join(root, 'pods/u-1/volumes/kubernetes.io~empty-dir/data'));
    expect(await mode(path)).toBe('777');
    await writeFile(join(path, 'f'), 'kept');
    await manager.mount(pod, signal);
    expect(await readFile(join(path, 'f'), 'utf8')).toBe('kept');
  });

  it('an emptyDir in memory has its size limit, and belongs to the fsGroup', async () => {
    const volumes = [{ name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '2Mi' } }];
    const pod = podOf({ volumes, securityContext: { fsGroup: 4242 } });
    await manager.mount(pod, signal);
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'm');
    expect(await mountsUnder(path)).toEqual([path]);
    expect(await mode(path)).toBe('2777');
    expect((await stat(path)).gid).toBe(4242);
    await expect(writeFile(join(path, 'big'), Buffer.alloc(3 << 20))).rejects.toThrow('ENOSPC');
  });
});

describe('emptyDir in special memory', () => {
  /** Resolves with the type and the options of the mount. */
  const mounted = async (path: string): Promise<string> => {
    const line = (await readFile('/proc/self/mountinfo', 'utf8'))
      .split('\n')
      .find((each) => each.split(' ')[4] === path);
    return line?.split(' - ')[1] ?? '';
  };

  it("an emptyDir in memory without a limit is as large as the node's allocatable memory, and is not swapped", async () => {
    manager.close();
    manager = managerOf({ allocatable: { memory: '12Mi' } });
    const pod = podOf({ volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }] });
    await manager.mount(pod, signal);
    const options = await mounted(manager.hostPath('u-1', pod, 'm'));
    expect(options).toContain('size=12288k');
    const [major = 0, minor = 0] = release().split('.').map(Number);
    if (major > 6 || (major === 6 && minor >= 4)) expect(options).toContain('noswap');
  });

  it('an emptyDir can consist of huge pages of the size that a container requests', async () => {
    const resources = { requests: { 'hugepages-2Mi': '2Mi' } };
    const emptyDir = (medium: string) => ({ name: 'h', emptyDir: { medium } });
    const containers: Container[] = [{ name: 'c', resources }];
    for (const medium of ['HugePages', 'HugePages-2Mi']) {
      const pod = podOf({ volumes: [emptyDir(medium)], containers, securityContext: { fsGroup: 4242 } });
      await manager.mount(pod, signal);
      await manager.mount(pod, signal);
      const path = manager.hostPath('u-1', pod, 'h');
      expect(await mountsUnder(path)).toEqual([path]);
      expect(await mounted(path)).toMatch(/^hugetlbfs .*pagesize=2M/);
      expect(await mode(path)).toBe('2777');
      expect((await stat(path)).gid).toBe(4242);
      await manager.unmount('u-1', signal);
    }
    await expect(manager.mount(podOf({ volumes: [emptyDir('HugePages')] }), signal)).rejects.toThrow(
      'medium HugePages: hugePages storage requested, but there is no resource request for huge pages',
    );
    await expect(manager.mount(podOf({ volumes: [emptyDir('Tape')] }), signal)).rejects.toThrow(
      'unknown storage medium "Tape"',
    );
  });
});

describe('a claim', () => {
  const labelNode = async (hostname: string): Promise<void> => {
    const metadata = { name: 'n1', labels: { 'kubernetes.io/hostname': hostname } };
    await backend.set(ref('nodes'), { apiVersion: 'v1', kind: 'Node', metadata });
  };
  /** The claim is bound to a local volume of the host `here`. */
  const claimed = async (
    readOnly: boolean,
    spec: Partial<PersistentVolumeSpec> = {},
  ): Promise<{ pod: Pod; folder: string }> => {
    const folder = join(root, 'outside');
    await mkdir(folder, { recursive: true });
    await labelNode('here');
    const { accessModes = ['ReadWriteOnce'] } = spec;
    const { metadata: stored } = await backend.set<PersistentVolumeClaim>(ref('persistentvolumeclaims'), {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'c', namespace: 'ns1' },
      spec: { volumeName: 'v', storageClassName: '', accessModes, resources: { requests: { storage: '1Gi' } } },
      status: { phase: 'Bound' },
    });
    const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['here'] }];
    await backend.set<PersistentVolume>(ref('persistentvolumes'), {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'v' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes,
        local: { path: folder },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
        claimRef: { namespace: 'ns1', name: 'c', uid: stored.uid },
        ...spec,
      },
    });
    const volumes = [
      { name: 'data', persistentVolumeClaim: { claimName: 'c', readOnly } },
      { name: 'm', emptyDir: { medium: 'Memory' } },
    ];
    return { pod: podOf({ volumes }), folder };
  };

  it('a claim keeps its content when the Pod is removed, even if the data folder is reached through a link', async () => {
    const { pod, folder } = await claimed(false);
    await mkdir(join(root, 'disk'));
    await symlink('disk', join(root, 'link'));
    manager.close();
    manager = managerOf({ rootDirectory: join(root, 'link/pods') });
    await manager.mount(pod, signal);
    await manager.mount(pod, signal);
    await writeFile(join(manager.hostPath('u-1', pod, 'data'), 'precious'), '');
    expect(await mountsUnder(join(root, 'disk'))).toHaveLength(2);
    await manager.remove('u-1', signal);
    expect(await mountsUnder(root)).toEqual([]);
    expect(await readdir(folder)).toEqual(['precious']);
    expect(await readdir(join(root, 'disk/pods'))).toEqual([]);
  });

  it('a claim that is being deleted cannot be mounted', async () => {
    const { pod } = await claimed(false);
    // The claim remains, because it has a finalizer.
    await backend.remove(ref('persistentvolumeclaims'), 'ns1', 'c');
    await expect(manager.mount(pod, signal)).rejects.toThrow('error processing PVC ns1/c: PVC is being deleted');
  });

  const named = (pod: Pod, uid: string, spec: Partial<Pod['spec']> = {}): Pod => ({
    ...pod,
    metadata: { ...pod.metadata, name: uid, uid },
    spec: { ...(pod.spec as NonNullable<Pod['spec']>), ...spec },
  });

  it('a volume keeps its group while another Pod uses it, and gets the fsGroup of a later Pod', async () => {
    const { pod, folder } = await claimed(false);
    await writeFile(join(folder, 'file'), '');
    const of = (uid: string, fsGroup: number): Pod => named(pod, uid, { securityContext: { fsGroup } });
    await manager.mount(of('u-1', 4000), signal);
    await manager.mount(of('u-2', 4000), signal);
    expect(failures).toEqual([]);
    await manager.mount(of('u-3', 5000), signal);
    expect(failures).toEqual([
      'The requested fsGroup is 5000, but the volume v has GID 4000. The volume may not be shareable.',
    ]);
    expect((await stat(join(folder, 'file'))).gid).toBe(4000);
    for (const uid of ['u-1', 'u-2', 'u-3']) await manager.unmount(uid, signal);
    await manager.mount(of('u-3', 5000), signal);
    expect((await stat(join(folder, 'file'))).gid).toBe(5000);
  });

  it('a ReadWriteOncePod volume is mounted for one Pod at a time, also after a crash, and the next Pod is retried', async () => {
    const { pod } = await claimed(false, { accessModes: ['ReadWriteOncePod'] });
    const both = await Promise.allSettled([manager.mount(pod, signal), manager.mount(named(pod, 'u-2'), signal)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const [has, waits] = both[0]?.status === 'fulfilled' ? ['u-1', 'u-2'] : ['u-2', 'u-1'];
    manager.close();
    manager = managerOf();
    await expect(manager.mount(named(pod, waits), signal)).rejects.toThrow(
      'MountVolume.SetUp failed for volume "data" : volume uses the ReadWriteOncePod access mode and is already in use by another pod',
    );
    await manager.mount(named(pod, has), signal);
    await manager.unmount(has, signal);
    expect(await retried.promise).toBe(waits);
    await manager.mount(named(pod, waits), signal);
  });

  it('a claim whose volume belongs to another node is not mounted', async () => {
    const { pod } = await claimed(false);
    await labelNode('elsewhere');
    await expect(manager.mount(pod, signal)).rejects.toThrow(
      'MountVolume.NodeAffinity check failed for volume "data" : no matching NodeSelectorTerms',
    );
    await labelNode('here');
    await manager.mount(pod, signal);
  });

  it('a hostPath volume shows the path with mounts below it, and creates the path if it is missing', async () => {
    const path = join(root, 'node/path');
    const { pod } = await claimed(false, { local: undefined, hostPath: { path } });
    await manager.mount(pod, signal);
    await mkdir(join(path, 'below'));
    await mountTmpfs(join(path, 'below'), ['size=1m'], signal);
    await writeFile(join(path, 'below/file'), '');
    await manager.mount(pod, signal);
    const shown = manager.hostPath('u-1', pod, 'data');
    expect(await readdir(join(shown, 'below'))).toEqual(['file']);
    await manager.remove('u-1', signal);
    expect(await readdir(join(path, 'below'))).toEqual(['file']);
    await expect(lstat(shown)).rejects.toThrow('ENOENT');
  });

  it('a read-only claim is remounted read-only when an engine died before doing so', async () => {
    const { pod } = await claimed(true);
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'data');
    await runCommandOk('mount', ['-o', 'remount,bind,rw', path]);
    await manager.mount(pod, signal);
    await expect(writeFile(join(path, 'f'), '')).rejects.toThrow('EROFS');
  });
});

describe('an image', () => {
  const withImages = (images: Partial<VolumeImages>): void => {
    manager.close();
    const info = { id: 'i', tags: [], digests: [], sizeBytes: 1 };
    manager = managerOf({
      images: {
        status: async () => info,
        pull: async () => ({ info, millis: 1 }),
        mounts: async () => [],
        release: async () => undefined,
        event: () => undefined,
        ...images,
      },
    });
  };
  const pod = podOf({ volumes: [{ name: 'i', image: { reference: 'files:1' } }] });

  it('an image volume with many layers is one read-only mount', async () => {
    // The full paths of the layers exceed the length that the kernel accepts as mount options.
    const layers = Array.from({ length: 120 }, (_, n) =>
      join(root, 'containerd/io.containerd.snapshotter', String(n), 'fs'),
    );
    for (const layer of layers) await mkdir(layer, { recursive: true });
    await writeFile(join(layers[119] as string, 'lowest'), 'here');
    withImages({
      mounts: async () => [
        { type: 'overlay', source: 'overlay', options: ['index=off', `lowerdir=${layers.join(':')}`] },
      ],
    });
    await manager.mount(pod, signal);
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'i');
    expect(await mountsUnder(path)).toEqual([path]);
    expect(await readFile(join(path, 'lowest'), 'utf8')).toBe('here');
    await expect(writeFile(join(path, 'f'), '')).rejects.toThrow('EROFS');
  });

  it('an image volume with one layer is remounted read-only when an engine died before doing so', async () => {
    await mkdir(join(root, 'layer'));
    withImages({ mounts: async () => [{ type: 'bind', source: join(root, 'layer'), options: ['ro', 'rbind'] }] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'i');
    await runCommandOk('mount', ['-o', 'remount,bind,rw', path]);
    await manager.mount(pod, signal);
    await expect(writeFile(join(path, 'f'), '')).rejects.toThrow('EROFS');
  });

  it('a slow image pull does not delay the failure of another volume', async () => {
    const pull = Promise.withResolvers<never>();
    const asked = Promise.withResolvers<void>();
    withImages({
      status: async () => undefined,
      pull() {
        asked.resolve();
        return pull.promise;
      },
    });
    const volumes = [
      { name: 'i', image: { reference: 'files:1' } },
      { name: 'v', configMap: { name: 'conf' } },
    ];
    const mounting = manager.mount(podOf({ volumes }), signal);
    await asked.promise;
    // The registry responds in the same turn of the event loop, so the lookup of the ConfigMap has failed after this turn.
    await new Promise(setImmediate);
    timers.advance(1000);
    expect(failures).toEqual(['MountVolume.SetUp failed for volume "v" : configmap "conf" not found']);
    pull.reject(new Error('no such host'));
    await expect(mounting).rejects.toMatchObject({ reason: 'ErrImagePull', image: 'files:1', message: 'no such host' });
    expect(failures).toHaveLength(1);
  });
});

describe('projected', () => {
  it("a projected volume has the ServiceAccount's token, the CA and the namespace, in memory", async () => {
    await backend.set(ref('configmaps'), rootCa);
    const pod = podOf({ volumes: [accountVolume] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'kube-api-access');
    expect((await statfs(path)).type).toBe(TMPFS_MAGIC);
    const text = (name: string) => readFile(join(path, name), 'utf8');
    expect([await text('token'), await text('ca.crt'), await text('namespace')]).toEqual(['token-1', 'CERT', 'ns1']);
    expect(await mode(join(path, 'token'))).toBe('644');
    expect(await readlink(join(path, 'token'))).toBe('..data/token');
    expect(await readlink(join(path, '..data'))).toMatch(/^\.\.2026_01_31_00_00_00\.\d+$/);
    expect(tokens).toMatchObject([
      {
        account: 'ns1/robot',
        request: {
          kind: 'TokenRequest',
          spec: { expirationSeconds: 3607, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p1', uid: 'u-1' } },
        },
      },
    ]);
  });

  it('a token is renewed before 80% of its lifetime, in one step', async () => {
    await backend.set(ref('configmaps'), rootCa);
    const pod = podOf({ volumes: [accountVolume] });
    await mountAndFollow(pod);
    const path = manager.hostPath('u-1', pod, 'kube-api-access');
    const reader = await open(join(path, 'token'));
    timers.advance(749_000);
    expect(tokens).toHaveLength(1);
    timers.advance(2000);
    await manager.mount(podOf({ volumes: [] }), signal); // Operations of a Pod are serial, so this one ends after the renewal.
    expect(await readFile(join(path, 'token'), 'utf8')).toBe('token-2');
    const old = await reader.readFile('utf8').finally(() => reader.close());
    expect(old).toBe('token-1');
    expect((await readdir(path)).filter((name) => /^\.\.\d/.test(name))).toHaveLength(1);
    await manager.unmount('u-1', signal);
    timers.advance(10_000_000);
    expect(tokens).toHaveLength(2);
  });

  it('tokens are renewed until the volumes are unmounted, also while the Pod is being deleted', async () => {
    await backend.set(ref('configmaps'), rootCa);
    const pod = podOf({ volumes: [accountVolume], deferContainers: [{ name: 'd' }] });
    await mountAndFollow(pod);
    // Mounts the volumes again, as an agent does after its restart while defer containers run.
    const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-31T00:00:01Z', deletionGracePeriodSeconds: 3600 };
    await manager.mount({ ...pod, metadata }, signal);
    const path = manager.hostPath('u-1', pod, 'kube-api-access');
    for (const expected of ['token-2', 'token-3']) {
      timers.advance(751_000);
      await manager.mount(podOf({ volumes: [] }), signal); // Operations of a Pod are serial, so this one ends after the renewal.
      await manager.mount({ ...pod, metadata }, signal);
      expect(await readFile(join(path, 'token'), 'utf8')).toBe(expected);
    }
    await manager.unmount('u-1', signal);
    timers.advance(10_000_000);
    expect(tokens).toHaveLength(3);
  });

  it("a token is readable only by the Pod's single user and its group", async () => {
    const sources = [{ serviceAccountToken: { path: 'deep/token' } }];
    const pod = podOf({
      volumes: [{ name: 't', projected: { sources } }],
      securityContext: { runAsUser: 77, fsGroup: 88 },
    });
    await manager.mount(pod, signal);
    const file = join(manager.hostPath('u-1', pod, 't'), 'deep/token');
    expect(await mode(file)).toBe('640');
    expect(await stat(file)).toMatchObject({ uid: 77, gid: 88 });
  });
});

describe('configMap, secret and downwardAPI', () => {
  it('a ConfigMap volume has the chosen keys with their modes, and is updated when it is mounted again', async () => {
    await backend.set(ref('configmaps'), configMap({ a: '1', b: '2' }));
    const items = [
      { key: 'a', path: 'x/y', mode: 0o400 },
      { key: 'b', path: 'z' },
    ];
    const pod = podOf({ volumes: [{ name: 'v', configMap: { name: 'conf', defaultMode: 0o600, items } }] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'v');
    expect([await mode(join(path, 'x/y')), await mode(join(path, 'z'))]).toEqual(['400', '600']);
    const generation = await readlink(join(path, '..data'));
    await manager.mount(pod, signal);
    expect(await readlink(join(path, '..data'))).toBe(generation);

    await backend.set(ref('configmaps'), configMap({ a: 'new', b: '2' }));
    timers.advance(5000);
    await manager.mount(
      podOf({ volumes: [{ name: 'v', configMap: { name: 'conf', items: items.slice(0, 1) } }] }),
      signal,
    );
    expect(await readFile(join(path, 'x/y'), 'utf8')).toBe('new');
    expect((await readdir(path)).filter((name) => !name.startsWith('..'))).toEqual(['x']);
  });

  it('Secret and downwardAPI volumes have binary data and fields of the Pod', async () => {
    const data = { key: Buffer.from([0, 255, 1]).toString('base64') };
    await backend.set(ref('secrets'), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's', namespace: 'ns1' },
      data,
    } as KubeObject);
    const fields = [
      { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
      { path: 'cpu', resourceFieldRef: { containerName: 'c', resource: 'limits.cpu' } },
    ];
    const pod = podOf({
      volumes: [
        { name: 's', secret: { secretName: 's' } },
        { name: 'd', downwardAPI: { items: fields } },
      ],
    });
    await manager.mount(pod, signal);
    const secret = manager.hostPath('u-1', pod, 's');
    expect((await statfs(secret)).type).toBe(TMPFS_MAGIC);
    expect(await readFile(join(secret, 'key'))).toEqual(Buffer.from([0, 255, 1]));
    const downward = manager.hostPath('u-1', pod, 'd');
    expect(await readFile(join(downward, 'labels'), 'utf8')).toBe('a="one \\"x\\""\nb="2"');
    expect(await readFile(join(downward, 'cpu'), 'utf8')).toBe('4');
  });

  it.each([
    ['configmap "x" not found', { configMap: { name: 'x' } }],
    ['secret "x" not found', { secret: { secretName: 'x' } }],
    [
      'configmap references non-existent config key: no',
      { configMap: { name: 'conf', items: [{ key: 'no', path: 'p' }] } },
    ],
    ['volume kind "nfs" is not supported', { nfs: { server: 's', path: '/' } }],
    [
      'hostPath type check failed: /etc/passwd is not a directory',
      { hostPath: { path: '/etc/passwd', type: 'Directory' } },
    ],
    [
      'hostPath type check failed: /nonexistent/x is not a file',
      { hostPath: { path: '/nonexistent/x', type: 'File' } },
    ],
  ])('mounting a volume fails with: %s', async (message, source) => {
    await backend.set(ref('configmaps'), configMap({ a: '1' }));
    await expect(manager.mount(podOf({ volumes: [{ name: 'v', ...source }] }), signal)).rejects.toMatchObject({
      reason: 'FailedMount',
      message: `MountVolume.SetUp failed for volume "v" : ${message}`,
    });
  });

  it('every volume that cannot be mounted is reported', async () => {
    const volumes = ['x', 'y'].map((name) => ({ name, configMap: { name } }));
    await expect(manager.mount(podOf({ volumes }), signal)).rejects.toThrow('configmap "x" not found');
    expect(failures).toEqual(['MountVolume.SetUp failed for volume "y" : configmap "y" not found']);
  });

  it('a Pod is retried when its missing ConfigMap is created', async () => {
    const pod = podOf({ volumes: [{ name: 'v', configMap: { name: 'conf' } }] });
    await expect(manager.mount(pod, signal)).rejects.toThrow('configmap "conf" not found');
    await backend.set(ref('configmaps'), configMap({ a: '1' }));
    expect(await retried.promise).toBe('u-1');
    await manager.mount(pod, signal);
  });

  it('a volume of a missing optional object is empty', async () => {
    const pod = podOf({ volumes: [{ name: 'v', configMap: { name: 'x', optional: true } }] });
    await manager.mount(pod, signal);
    const visible = (await readdir(manager.hostPath('u-1', pod, 'v'))).filter((name) => !name.startsWith('..'));
    expect(visible).toEqual([]);
  });
});

describe('changes of mounted objects', () => {
  /** Operations of a Pod are serial, so the earlier ones have ended when this one has ended. */
  const settled = () => manager.unmount('u-1', signal);

  it('a changed ConfigMap is written without a new token, and no longer after the volumes are unmounted', async () => {
    await backend.set(ref('configmaps'), rootCa);
    const pod = podOf({ volumes: [accountVolume] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'kube-api-access');
    const swapped = watched(path);
    await backend.set(ref('configmaps'), { ...rootCa, data: { 'ca.crt': 'NEW' } } as KubeObject);
    await swapped;
    expect(await readFile(join(path, 'ca.crt'), 'utf8')).toBe('NEW');
    expect(await readFile(join(path, 'token'), 'utf8')).toBe('token-1');
    expect(tokens).toHaveLength(1);
    await settled();
    await backend.set(ref('configmaps'), { ...rootCa, data: { 'ca.crt': 'LATE' } } as KubeObject);
    await settled();
    await expect(lstat(path)).rejects.toThrow('ENOENT');
  });

  it('a change that cannot be written is retried later', async () => {
    await backend.set(ref('configmaps'), configMap({ a: 'old' }));
    const pod = podOf({ volumes: [{ name: 'v', configMap: { name: 'conf' } }] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'v');
    const failed = Promise.withResolvers<void>();
    manager.close();
    manager = managerOf({ onFailure: () => failed.resolve() });
    await manager.mount(pod, signal);
    // The write fails, because this folder has the name of the link that would be renamed.
    await mkdir(join(path, '..data_tmp'));
    await backend.set(ref('configmaps'), configMap({ a: 'new' }));
    await failed.promise;
    expect(await readFile(join(path, 'a'), 'utf8')).toBe('old');
    await rm(join(path, '..data_tmp'), { recursive: true });
    const swapped = watched(path);
    timers.advance(30_000);
    await swapped;
    expect(await readFile(join(path, 'a'), 'utf8')).toBe('new');
  });

  it("a downwardAPI volume follows the Pod's labels", async () => {
    const items = [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }];
    const pod = podOf({ volumes: [{ name: 'd', downwardAPI: { items } }] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'd');
    const swapped = watched(path);
    manager.update({ ...pod, metadata: { ...pod.metadata, labels: { c: '3' } } });
    await swapped;
    expect(await readFile(join(path, 'labels'), 'utf8')).toBe('c="3"');
  });
});

/** The volume in the folder `path` has new content when its link ..data has been replaced. */
const watched = async (path: string): Promise<void> => {
  for await (const { filename } of watch(path, { signal: AbortSignal.timeout(10_000) }))
    if (filename === '..data') return;
};

describe('unmount', () => {
  it("unmount removes the volumes and remove() the Pod's folder; both follow no links and can be repeated", async () => {
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'precious'), '');
    await backend.set(ref('configmaps'), rootCa);
    const pod = podOf({
      volumes: [accountVolume, { name: 'data', emptyDir: {} }, { name: 'm', emptyDir: { medium: 'Memory' } }],
    });
    await manager.mount(pod, signal);
    await symlink(outside, join(manager.hostPath('u-1', pod, 'data'), 'link'));
    await symlink(outside, join(manager.hostPath('u-1', pod, 'm'), 'link'));
    const message = join(manager.podDirectory('u-1'), 'containers', 'app', '0');
    await mkdir(dirname(message), { recursive: true });
    await writeFile(message, 'last words');
    await manager.unmount('u-1', signal);
    // A Pod that has ended keeps the files to which its status refers.
    expect(await readdir(manager.podDirectory('u-1'))).toEqual(['containers']);
    await manager.remove('u-1', signal);
    await manager.remove('u-1', signal);
    await expect(lstat(manager.podDirectory('u-1'))).rejects.toThrow('ENOENT');
    const memory = join(root, 'memory');
    expect(await mountsUnder(root)).toEqual([memory]);
    expect(await readdir(memory)).toEqual([]);
    expect(await readdir(outside)).toEqual(['precious']);
  });

  it('removing one Pod deletes its Secrets from the tmpfs that it shares with other Pods', async () => {
    await backend.set(ref('configmaps'), rootCa);
    const pods = ['u-1', 'u-2'].map((uid) => {
      const pod = podOf({ volumes: [accountVolume] });
      return { ...pod, metadata: { ...pod.metadata, uid } };
    });
    const memory = join(root, 'memory');
    await Promise.all(pods.map((pod) => manager.mount(pod, signal)));
    expect(await mountsUnder(root)).toEqual([memory]);
    expect(await mode(memory)).toBe('700');
    await manager.remove('u-1', signal);
    expect(await readdir(memory)).toEqual(['u-2']);
    await unmountUnder(memory, signal);
    await Promise.all(pods.map((pod) => manager.mount(pod, signal)));
    expect(await mountsUnder(root)).toEqual([memory]);
    for (const pod of pods) {
      const token = join(manager.hostPath(pod.metadata.uid, pod, 'kube-api-access'), 'token');
      expect((await statfs(token)).type).toBe(TMPFS_MAGIC);
    }
  });

  it('unmount fails while a mount that a container made in its Secret is busy', async () => {
    await backend.set(ref('configmaps'), rootCa);
    const pod = podOf({ volumes: [accountVolume] });
    await mountAndFollow(pod);
    const inner = join(manager.hostPath('u-1', pod, 'kube-api-access'), 'inner');
    await mkdir(inner);
    await mountTmpfs(inner, [], signal);
    const user = await open(join(inner, 'used'), 'w');
    await expect(manager.unmount('u-1', signal)).rejects.toThrow(`cannot unmount ${inner}`);
    await user.close();
    await manager.unmount('u-1', signal);
    expect(await readdir(join(root, 'memory'))).toEqual([]);
  });

  it('unmount fails with a clear error while a mount is busy, and succeeds afterwards', async () => {
    const pod = podOf({ volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }] });
    await manager.mount(pod, signal);
    const path = manager.hostPath('u-1', pod, 'm');
    const user = await open(join(path, 'used'), 'w');
    await expect(manager.unmount('u-1', signal)).rejects.toThrow(`cannot unmount ${path}`);
    expect(await mountsUnder(path)).toEqual([path]);
    await user.close();
    await manager.unmount('u-1', signal);
    expect(await mountsUnder(root)).toEqual([]);
  });

  it('unmount refuses a string that is not a UID', async () => {
    await expect(async () => manager.unmount('../outside', signal)).rejects.toThrow('invalid Pod UID');
  });
});

describe('subPath', () => {
  const container: Container = { name: 'c', volumeMounts: [{ name: 'data', mountPath: '/x', subPath: 'a/b' }] };
  const prepare = async () => {
    const pod = podOf({ volumes: [{ name: 'data', emptyDir: {} }], containers: [container] });
    await manager.mount(pod, signal);
    const env: PodEnvironment = {
      nodeName: 'n1',
      hostIps: [],
      podIps: ['10.0.0.7'],
      allocatable: {},
      services: [],
      configMap: () => undefined,
      secret: () => undefined,
      dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
      podDirectory: manager.podDirectory('u-1'),
      logsRoot: join(root, 'logs'),
      seccompRoot: '/nonexistent',
      memoryCapacityBytes: 1,
      volumePath: (name) => manager.hostPath('u-1', pod, name),
    };
    return {
      pod,
      env,
      volume: env.volumePath('data'),
      target: join(env.podDirectory, 'volume-subpaths/data/c/0'),
      run: () =>
        prepareContainer(pod, { ...container, terminationMessagePath: '/dev/termination-log' }, 2, env, signal),
    };
  };

  it('a subPath is created in the volume and mounted for the container, again at each start', async () => {
    const { volume, target, run } = await prepare();
    await run();
    await run();
    expect(await mountsUnder(target)).toEqual([target]);
    await writeFile(join(target, 'f'), 'through');
    expect(await readFile(join(volume, 'a/b/f'), 'utf8')).toBe('through');
    expect(await mode(join(volume, 'a/b'))).toBe('777');
    expect(await readFile(join(manager.podDirectory('u-1'), 'etc-hosts'), 'utf8')).toContain('10.0.0.7\tp1\n');
    expect(await mode(join(manager.podDirectory('u-1'), 'containers/c/2'))).toBe('666');
    expect((await stat(join(root, 'logs/ns1_p1_u-1/c'))).isDirectory()).toBe(true);
    await manager.unmount('u-1', signal);
    expect(await mountsUnder(root)).toEqual([]);
  });

  it('many containers can create the same subPath at the same time', async () => {
    const { volume, env, pod } = await prepare();
    const names = Array.from({ length: 16 }, (_, n) => `c${n}`);
    await Promise.all(names.map((name) => prepareContainer(pod, { ...container, name }, 0, env, signal)));
    expect(await mode(join(volume, 'a'))).toBe('777');
    expect(await mode(join(volume, 'a/b'))).toBe('777');
    expect(await mountsUnder(join(env.podDirectory, 'volume-subpaths'))).toHaveLength(16);
  });

  it('a subPath may follow links inside the volume, but not out of it', async () => {
    const { volume, target, run } = await prepare();
    await mkdir(join(volume, 'real/b'), { recursive: true });
    await symlink('real', join(volume, 'a'));
    await run();
    await writeFile(join(target, 'f'), '');
    expect(await readdir(join(volume, 'real/b'))).toEqual(['f']);

    await unmountUnder(target, signal);
    await rm(join(volume, 'a'));
    await mkdir(join(root, 'outside/b'), { recursive: true });
    await symlink(join(root, 'outside'), join(volume, 'a'));
    await expect(run()).rejects.toMatchObject({
      reason: 'CreateContainerConfigError',
      message: 'failed to prepare subPath for volumeMount "data" of container "c"',
    });
    await rm(join(root, 'outside/b'), { recursive: true });
    await expect(run()).rejects.toThrow('failed to create subPath directory for volumeMount "data" of container "c"');
    expect(await mountsUnder(target)).toEqual([]);
  });
});

describe('mounts', () => {
  it('mounts with unusual names are found and unmounted, the deepest first', async () => {
    const odd = join(root, 'with space\tand tab');
    await mkdir(odd);
    await mountTmpfs(odd, ['size=1m'], signal);
    await mkdir(join(odd, 'inner'));
    await bindMount(root, join(odd, 'inner'), signal);
    await runCommandOk('mount', ['--make-private', join(odd, 'inner')]);
    expect(await mountsUnder(odd)).toEqual([odd, join(odd, 'inner')]);
    await unmountUnder(odd, signal);
    expect(await mountsUnder(root)).toEqual([]);
    await chmod(odd, 0o700);
  });

  it('isMountPoint recognizes mounts of tmpfs, folders and files, and not links to them', async () => {
    const [memory, bound, file, plain, link] = ['memory', 'bound', 'file', 'plain', 'link'].map((name) =>
      join(root, name),
    );
    for (const folder of [memory, bound, plain]) await mkdir(folder as string);
    await writeFile(file as string, '');
    await mountTmpfs(memory as string, ['size=1m'], signal);
    await bindMount(plain as string, bound as string, signal);
    await bindMount('/etc/hostname', file as string, signal);
    await symlink(memory as string, link as string);
    const places = [memory, bound, file, plain, link, join(root, 'absent'), join(root, 'absent/too')] as string[];
    expect(await Promise.all(places.map(isMountPoint))).toEqual([true, true, true, false, false, false, false]);
  });
});
