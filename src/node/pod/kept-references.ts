/**
 * Copies of the objects that a Pod's defer containers refer to: the ConfigMaps and Secrets of their variables, and the Pod's pull
 * secrets. Whoever deletes a whole application deletes them before the entries' turn.
 *
 * Boundary: keeps copies and finds them; who asks decides when a copy counts. (Volumes keep their own files, tokens among them.)
 * Invariants:
 *  1. Copies are made before the first container of the Pod starts, and follow their objects as long as these exist.
 *  2. They are in the Pod's folders, and outlive the agent; for root alone, Secrets in memory only.
 *  3. Nothing is written of a Pod that was forgotten.
 *  4. No content of an object is in an error or a log.
 */
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Platform } from '../../platform/platform.ts';
import { environmentReferences } from '../container/environment-variables.ts';
import type { PodMemory } from '../volumes/pod-memory.ts';
import { type FileSource, fileSourceKey } from '../volumes/references.ts';
import type { VolumePort } from './executor.ts';

/** The name of a folder in the Pod's folders on disk and in memory. It is removed with the Pod's volumes. */
export const KEPT_FOLDER = 'kept';

export interface KeptReferences {
  /** Makes the copies, once; what cannot be read is tried again by itself. */
  keep(pod: Pod): Promise<void>;
  /** The object of this key (fileSourceKey) has changed. */
  changed(key: string): void;
  find<T extends KubeObject>(pod: Pod, resource: FileSource, name: string): Promise<T | undefined>;
  /** The same volumes; before they are unmounted or removed the Pod is forgotten. */
  guard(volumes: VolumePort): VolumePort;
}

export interface KeptReferencesOptions extends Platform {
  client: Client;
  podDirectory(podUid: string): string;
  /** Where Secrets are kept. */
  memory: PodMemory;
  /** Nothing of it is asked of the API. */
  isStatic(pod: Pod): boolean;
  signal: AbortSignal;
}

interface Reference {
  resource: FileSource;
  name: string;
}

export function createKeptReferences(options: KeptReferencesOptions): KeptReferences {
  const { client, log, timers, signal, memory } = options;
  const pods = new Map<string, { pod: Pod; references: ReadonlyMap<string, Reference> }>();
  /** By Pod UID: what is being written. */
  const writing = new Map<string, Promise<void>>();

  const folderOf = (uid: string, resource: FileSource): string =>
    join(resource === 'secrets' ? memory.directory(uid) : options.podDirectory(uid), KEPT_FOLDER, resource);
  const fileOf = (uid: string, { resource, name }: Reference): string =>
    join(folderOf(uid, resource), encodeURIComponent(name));

  async function copy(uid: string, reference: Reference): Promise<void> {
    const { pod } = pods.get(uid) ?? {};
    if (pod === undefined) return;
    const { resource, name } = reference;
    const api = client.resource<KubeObject & Content>({ group: '', version: 'v1', resource });
    const object = await api.get(name, pod.metadata.namespace).catch((error: unknown) => {
      if (!isApiError(error, 'NotFound')) throw error;
    });
    if (object === undefined || !pods.has(uid)) return;
    const folder = folderOf(uid, resource);
    // The removal of what unknown Pods have left begins with this folder.
    await mkdir(options.podDirectory(uid), { recursive: true, mode: 0o750 });
    if (resource === 'secrets') await memory.ready();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // No object has a name that begins with a dot.
    const unfinished = join(folder, '.new');
    await writeFile(unfinished, JSON.stringify(contentOf(object)), { mode: 0o600 });
    await chmod(unfinished, 0o600);
    await rename(unfinished, fileOf(uid, reference));
  }

  /** One after the other: they share their folders. */
  function copyAll(uid: string): Promise<void> {
    const before = writing.get(uid) ?? Promise.resolve();
    const copying = before.then(async () => {
      for (const reference of pods.get(uid)?.references.values() ?? []) await copy(uid, reference);
    });
    const settled = copying.catch(() => undefined);
    writing.set(uid, settled);
    void settled.then(() => {
      if (writing.get(uid) === settled) writing.delete(uid);
    });
    return copying;
  }

  const copies = createWorkQueue({ name: 'kept-references', process: copyAll, log, timers, signal });

  async function forget(uid: string): Promise<void> {
    pods.delete(uid);
    await writing.get(uid);
  }

  return {
    async keep(pod) {
      const { uid = '', name } = pod.metadata;
      if (pods.has(uid)) return writing.get(uid);
      const references = referencesOf(pod);
      if (references.size === 0 || options.isStatic(pod)) return;
      pods.set(uid, { pod, references });
      await copyAll(uid).catch((error: Error) => {
        log.warn('what defer containers refer to is not kept yet', { pod: name, error: error.message });
        copies.add(uid);
      });
    },
    changed(key) {
      for (const [uid, { references }] of pods) if (references.has(key)) copies.add(uid);
    },
    async find<T extends KubeObject>({ metadata }: Pod, resource: FileSource, name: string) {
      try {
        return JSON.parse(await readFile(fileOf(metadata.uid ?? '', { resource, name }), 'utf8')) as T;
      } catch {
        // It never was, its memory is gone, or the machine stopped while it was written.
        return undefined;
      }
    },
    guard: (volumes) => ({
      ...volumes,
      unmount: (uid, abort) => forget(uid).then(() => volumes.unmount(uid, abort)),
      remove: (uid, abort) => forget(uid).then(() => volumes.remove(uid, abort)),
    }),
  };
}

interface Content {
  type?: string;
  data?: Record<string, string>;
}

/** What variables and pulls need of it. */
const contentOf = ({ apiVersion, kind, metadata: { name, namespace, uid }, type, data }: KubeObject & Content) => ({
  ...{ apiVersion, kind, metadata: { name, namespace, uid } },
  ...{ type, data },
});

/** By key; none where the Pod has no defer containers. */
function referencesOf({ metadata: { namespace }, spec }: Pod): Map<string, Reference> {
  const references = new Map<string, Reference>();
  const add = (resource: FileSource, name: string | undefined): void => {
    if (name !== undefined && name !== '') references.set(fileSourceKey(resource, namespace, name), { resource, name });
  };
  for (const entry of spec?.deferContainers ?? []) {
    const { configMaps, secrets } = environmentReferences(entry);
    for (const name of configMaps) add('configmaps', name);
    for (const name of secrets) add('secrets', name);
  }
  if ((spec?.deferContainers ?? []).length > 0)
    for (const { name } of spec?.imagePullSecrets ?? []) add('secrets', name);
  return references;
}
