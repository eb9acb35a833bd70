/** A Storage over a real registry. Its informers show the registry's current objects. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { volumeIndex } from '../../scheduling/volume-search.ts';
import { groupedKeys } from './grouped-keys.ts';
import { claimKey, controllersOf, type Storage } from './storage.ts';

export interface StorageFixture {
  storage: Storage;
  backend: RegistryBackend;
  /** Names of objects that the informers do not show, as if their caches were stale. */
  unseen: Set<string>;
  /** Events as `TYPE REASON NAME: MESSAGE`. */
  reported: string[];
  /** Calls that change folders, as `VERB NAME`. */
  folderCalls: string[];
  failFolders(error: Error): void;
  putVolume(name: string, change?: Partial<PersistentVolume>): Promise<PersistentVolume>;
  putClaim(name: string, change?: Partial<PersistentVolumeClaim>): Promise<PersistentVolumeClaim>;
  putClass(name: string, change?: Partial<StorageClass>): Promise<StorageClass>;
  volume(name: string): PersistentVolume | undefined;
  /** Reads from the namespace `a`. */
  claim(name: string): PersistentVolumeClaim | undefined;
  writes(): string[];
}

const SIZE = { storage: '1Gi' };
const ACCESS_MODES = ['ReadWriteOnce'];

export async function storageFixture(): Promise<StorageFixture> {
  const backend = await registryBackend({ namespaces: ['a', 'b'] });
  const client = clientOf(backend);
  const unseen = new Set<string>();
  const reported: string[] = [];
  const folderCalls: string[] = [];
  let failure: Error | undefined;
  const changeFolder = async (call: string): Promise<void> => {
    folderCalls.push(call);
    if (failure !== undefined) throw failure;
  };
  function informer<T extends KubeObject>(ref: ResourceRef): Informer<T> {
    const list = () => backend.objects(ref).filter(({ metadata }) => !unseen.has(metadata.name)) as T[];
    return {
      synced: Promise.resolve(),
      list,
      get: (namespace, name) =>
        list().find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
      by: (keysOf, key) => new Set(list().filter((object) => keysOf(object).includes(key))),
      reached: async () => undefined,
      gone: async () => undefined,
    };
  }
  const volumes = informer<PersistentVolume>(PERSISTENT_VOLUMES);
  const claims = informer<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const claimsByOwner = groupedKeys<PersistentVolumeClaim>(
    ({ metadata }) => claimKey(metadata),
    ({ metadata }) => controllersOf(metadata).map(({ uid }) => uid),
  );
  const storage: Storage = {
    claims,
    claimsByOwner,
    volumes,
    search: { on: (node) => volumeIndex(volumes.list()).on(node) },
    classes: informer(STORAGE_CLASSES),
    nodes: informer(NODES),
    claimClient: client.resource(PERSISTENT_VOLUME_CLAIMS),
    volumeClient: client.resource(PERSISTENT_VOLUMES),
    folders: {
      nodeName: 'n',
      path: (name) => `/folders/${name}`,
      create: (name) => changeFolder(`create ${name}`),
      remove: (name) => changeFolder(`remove ${name}`),
      removeUnused: (name) => changeFolder(`removeUnused ${name}`),
    },
    events: {
      event: ({ metadata }, type, reason, message) =>
        void reported.push(`${type} ${reason} ${metadata.name}: ${message}`),
      flushed: async () => {},
    },
  };
  return {
    storage,
    backend,
    unseen,
    reported,
    folderCalls,
    failFolders(error) {
      failure = error;
    },
    ...objectsOf(backend),
    writes: () => backend.calls.splice(0).filter((call) => !/^(get|list|watch) /.test(call)),
  };
}

type Objects = Pick<StorageFixture, 'putVolume' | 'putClaim' | 'putClass' | 'volume' | 'claim'>;

const objectsOf = (backend: RegistryBackend): Objects => ({
  putVolume: (name, { metadata, spec, status = { phase: 'Available' } } = {}) =>
    backend.set<PersistentVolume>(PERSISTENT_VOLUMES, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { ...metadata, name },
      spec: { capacity: SIZE, accessModes: ACCESS_MODES, hostPath: { path: '/x' }, ...spec },
      status,
    }),
  putClaim: (name, { metadata, spec, status } = {}) =>
    backend.set<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'a', ...metadata, name },
      spec: { accessModes: ACCESS_MODES, resources: { requests: SIZE }, ...spec },
      status,
    }),
  putClass: (name, change = {}) =>
    backend.set<StorageClass>(STORAGE_CLASSES, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'Immediate',
      ...change,
      metadata: { name },
    }),
  volume: (name) =>
    (backend.objects(PERSISTENT_VOLUMES) as PersistentVolume[]).find(({ metadata }) => metadata.name === name),
  claim: (name) =>
    (backend.objects(PERSISTENT_VOLUME_CLAIMS) as PersistentVolumeClaim[]).find(
      ({ metadata }) => metadata.namespace === 'a' && metadata.name === name,
    ),
});
