import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCatalog } from '../../src/api/catalog.ts';
import type { CoreV1Event, PersistentVolume, PersistentVolumeClaim } from '../../src/api/generated/types.ts';
import { kinds } from '../../src/api/kinds.ts';
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../../src/api/resources.ts';
import { bootstrap } from '../../src/apiserver/registry/bootstrap.ts';
import { createRegistry } from '../../src/apiserver/registry/registry.ts';
import { createInformer } from '../../src/client/informer.ts';
import { withInformers } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import { startPersistentVolumes } from '../../src/controllers/persistent-volumes/persistent-volumes.ts';
import { createLocalFolders } from '../../src/node/volumes/local-folders.ts';
import { bindMount, unmountUnder } from '../../src/node/volumes/mounts.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { apiFor } from '../../src/ports/api-for.ts';
import type { ResourceApi } from '../../src/ports/backend.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';

const SERVICE_CIDR = '10.96.0.0/24';
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

let closers: AsyncDisposableStack;
let directory: string;
let registry: ResourceApi;
const timers = systemTimers();
const log = silentLog;

beforeEach(async () => {
  closers = new AsyncDisposableStack();
  directory = mkdtempSync(join(tmpdir(), 'lifepod-pv-'));
  closers.defer(() => rmSync(directory, { recursive: true }));
  const store = createMemoryStore();
  closers.defer(() => store.close());
  const backend = await createRegistry({
    store,
    catalog: createCatalog(kinds),
    timers,
    log,
    serviceCidr: SERVICE_CIDR,
  });
  closers.defer(() => backend.close());
  registry = apiFor(backend, { name: 'tester', groups: ['system:masters'] });
  await bootstrap(registry, { serviceCidr: SERVICE_CIDR, apiServerPort: 6443 });
});
afterEach(() => closers.disposeAsync());

const volumes = () => clientOf(registry).resource<PersistentVolume>(PERSISTENT_VOLUMES);
const claims = () => clientOf(registry).resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
const folders = () => createLocalFolders(directory, 'n1');

function start(backend: ResourceApi = registry, localFolders = folders()): AbortController {
  const stop = new AbortController();
  closers.defer(() => stop.abort());
  const client = clientOf(backend);
  void startPersistentVolumes(withInformers({ client, timers, log, signal: stop.signal, folders: localFolders }));
  return stop;
}

async function until(done: (volumes: PersistentVolume[], claims: PersistentVolumeClaim[]) => boolean): Promise<void> {
  const end = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const options = { log, timers, signal: end.signal };
  const check = (): void => {
    if (done(allVolumes.list(), allClaims.list())) resolve();
  };
  const handlers = { added: () => check(), updated: () => check(), deleted: () => check() };
  const allVolumes = createInformer(volumes(), options, handlers);
  const allClaims = createInformer(claims(), options, handlers);
  const deadline = AbortSignal.timeout(20_000);
  deadline.addEventListener('abort', () =>
    reject(new Error(`not reached: ${JSON.stringify([allVolumes.list(), allClaims.list()], undefined, 1)}`)),
  );
  await Promise.all([allVolumes.synced, allClaims.synced]);
  check();
  await promise.finally(() => end.abort());
}

function firstEvent(reason: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const events = clientOf(registry).resource<CoreV1Event>(EVENTS);
  const added = (event: CoreV1Event): void => {
    if (event.reason === reason) resolve(event.message);
  };
  const listening = new AbortController();
  closers.defer(() => listening.abort());
  createInformer(events, { log, timers, signal: listening.signal }, { added });
  return promise;
}

const claim = (name: string, spec: object = {}, annotations?: Record<string, string>): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default', ...(annotations === undefined ? {} : { annotations }) },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});
const hostVolume = (name: string): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'by-hand',
    hostPath: { path: `/${name}` },
  },
});
const isBound = ({ status }: PersistentVolume | PersistentVolumeClaim): boolean => status?.phase === 'Bound';

/**
 * Returns a backend that calls `die` at write number `count` of the controller, and never responds to that write. The write is executed
 * only if `when` is after. Writes of Events and StorageClasses do not count.
 */
function dyingAt(count: number, when: 'before' | 'after', die: () => void): ResourceApi {
  let left = count;
  const writing =
    <Args extends unknown[], Result>(write: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const { resource } = args[0] as { resource: string };
      if (resource === 'events' || resource === 'storageclasses' || --left > 0) return write(...args);
      if (left === 0 && when === 'after') await write(...args);
      die();
      return new Promise(() => {});
    };
  const bound = registry;
  return {
    ...bound,
    get: bound.get.bind(bound),
    list: bound.list.bind(bound),
    watch: bound.watch.bind(bound),
    create: writing(bound.create.bind(bound)),
    update: writing(bound.update.bind(bound)),
    patch: writing(bound.patch.bind(bound)),
    delete: writing(bound.delete.bind(bound)),
  };
}

const crashes = [1, 2, 3, 4, 5, 6].flatMap((count) => (['before', 'after'] as const).map((when) => ({ count, when })));

test.each(crashes)('a claim gets one folder although the controller dies $when its write $count', async (crash) => {
  const died = Promise.withResolvers<void>();
  const first: AbortController = start(
    dyingAt(crash.count, crash.when, () => {
      first.abort();
      died.resolve();
    }),
  );
  await until(() => true);
  await claims().create(claim('c', { storageClassName: 'local-path' }, { [SELECTED_NODE]: 'n1' }));
  // If there are fewer writes than `count`, the controller does not die.
  await Promise.race([died.promise, until((pvs, pvcs) => pvs.every(isBound) && pvcs.every(isBound) && pvs.length > 0)]);
  first.abort();
  start();
  await until((pvs, pvcs) => pvs.length === 1 && [...pvs, ...pvcs].every(isBound));
  const [volume] = (await volumes().list()).items;
  expect(readdirSync(join(directory, 'volumes'))).toEqual([volume?.metadata.name]);
});

test.each(crashes)(
  'the folder of a claim is deleted with the claim although the controller dies $when its write $count',
  async (crash) => {
    const stop = start();
    await claims().create(claim('c', { storageClassName: 'local-path' }, { [SELECTED_NODE]: 'n1' }));
    await until((pvs, pvcs) => pvs.length === 1 && [...pvs, ...pvcs].every(isBound));
    const name = (await volumes().list()).items[0]?.metadata.name ?? '';
    stop.abort();
    const died = Promise.withResolvers<void>();
    const second: AbortController = start(
      dyingAt(crash.count, crash.when, () => {
        second.abort();
        died.resolve();
      }),
    );
    await claims().delete('c', 'default');
    await Promise.race([died.promise, until((pvs, pvcs) => pvs.length + pvcs.length === 0)]);
    second.abort();
    start();
    await until((pvs, pvcs) => pvs.length + pvcs.length === 0);
    expect(existsSync(folders().path(name))).toBe(false);
  },
);

test.each([
  ['Delete', 'removed'],
  ['Retain', 'kept'],
])('when a volume with policy %s is deleted before its claim, its folder is %s', async (policy, outcome) => {
  start();
  await claims().create(claim('c', { storageClassName: 'local-path' }, { [SELECTED_NODE]: 'n1' }));
  await until((pvs, pvcs) => pvs.length === 1 && [...pvs, ...pvcs].every(isBound));
  const volume = (await volumes().list()).items[0] as PersistentVolume;
  const { name } = volume.metadata;
  await volumes().update({ ...volume, spec: { ...volume.spec, persistentVolumeReclaimPolicy: policy } });
  writeFileSync(join(folders().path(name), 'precious'), '');
  await volumes().delete(name);
  await claims().delete('c', 'default');
  await until((pvs, pvcs) => pvs.length + pvcs.length === 0);
  expect(existsSync(folders().path(name))).toBe(outcome === 'kept');
});

test('the folder of a deleted claim is removed once it is no longer mounted', async () => {
  start();
  await claims().create(claim('c', { storageClassName: 'local-path' }, { [SELECTED_NODE]: 'n1' }));
  await until((pvs, pvcs) => pvs.length === 1 && [...pvs, ...pvcs].every(isBound));
  const folder = folders().path((await volumes().list()).items[0]?.metadata.name ?? '');
  const target = join(directory, 'target');
  mkdirSync(target);
  await bindMount(folder, target, new AbortController().signal);
  closers.defer(() => unmountUnder(target, new AbortController().signal));
  const failed = firstEvent('VolumeFailedDelete');
  await claims().delete('c', 'default');
  expect(await failed).toBe(`cannot remove ${folder}: it is mounted at ${target}`);
  expect(existsSync(folder)).toBe(true);
  await unmountUnder(target, new AbortController().signal);
  await until((pvs) => pvs.length === 0);
  expect(existsSync(folder)).toBe(false);
});

test('a folder whose volume was never created is removed with its claim, unless it contains a file', async () => {
  const gone = new Map<string, PromiseWithResolvers<void>>();
  const local = folders();
  start(registry, {
    ...local,
    async removeUnused(name) {
      await local.removeUnused(name);
      gone.get(name)?.resolve();
    },
  });
  await until(() => true);
  for (const name of ['empty', 'used']) {
    // The claim waits for its first consumer. Its folder exists already, as after a crash before the creation of the volume.
    const made = await claims().create(claim(name, { storageClassName: 'local-path' }));
    const volumeName = `pvc-${made.metadata.uid}`;
    await local.create(volumeName);
    if (name === 'used') writeFileSync(join(local.path(volumeName), 'precious'), '');
    gone.set(volumeName, Promise.withResolvers());
    await claims().delete(name, 'default');
    await gone.get(volumeName)?.promise;
    expect(existsSync(local.path(volumeName))).toBe(name === 'used');
  }
});

test('claims that want the same volumes get one each, and the last claim waits', async () => {
  start();
  const names = ['a', 'b', 'c', 'd', 'e'];
  await Promise.all(names.map((name) => claims().create(claim(name, { storageClassName: 'by-hand' }))));
  await Promise.all(names.slice(1).map((name) => volumes().create(hostVolume(`pv-${name}`))));
  await until((pvs, pvcs) => pvs.filter(isBound).length === 4 && pvcs.filter(isBound).length === 4);
  const { items } = await claims().list({ namespace: 'default' });
  const bound = items.filter(isBound);
  expect(new Set(bound.map(({ spec }) => spec?.volumeName)).size).toBe(4);
  for (const { metadata, spec } of bound) {
    const volume = await volumes().get(spec?.volumeName ?? '');
    expect(volume.spec?.claimRef).toMatchObject({ name: metadata.name, uid: metadata.uid });
  }
  await volumes().create(hostVolume('pv-last'));
  await until((_, pvcs) => pvcs.every(isBound));
});

test.each([
  ['is not yet bound', undefined],
  ['is annotated as bound', { 'pv.kubernetes.io/bind-completed': 'yes' }],
])('a claim that names its volume and %s gets the volume once it matches', async (_, annotations) => {
  start();
  const mismatch = firstEvent('VolumeMismatch');
  const resources = { requests: { storage: '2Gi' } };
  const volume = await volumes().create(hostVolume('v'));
  await claims().create(claim('c', { storageClassName: 'by-hand', volumeName: 'v', resources }, annotations));
  expect(await mismatch).toBe('Cannot bind to requested volume "v": requested PV is too small');
  expect((await claims().get('c', 'default')).status?.phase).not.toBe('Bound');
  expect((await volumes().get('v')).spec?.claimRef).toBeUndefined();
  const { resourceVersion: __, ...metadata } = volume.metadata;
  await volumes().update({ ...volume, metadata, spec: { ...volume.spec, capacity: { storage: '2Gi' } } });
  await until((pvs, pvcs) => [...pvs, ...pvcs].every(isBound));
});

test('a claim without a class gets the default class; a claim with an empty class gets none', async () => {
  start();
  const classes = clientOf(registry).resource(STORAGE_CLASSES);
  const seen = Promise.withResolvers<void>();
  const options = { log, timers, signal: AbortSignal.timeout(20_000) };
  createInformer(classes, options, { added: () => seen.resolve() });
  await seen.promise;
  const named = async (spec: object): Promise<string | undefined> =>
    (await claims().create(claim(`c${Object.keys(spec).length}`, spec))).spec?.storageClassName;
  expect([await named({}), await named({ storageClassName: '' })]).toEqual(['local-path', '']);
});
