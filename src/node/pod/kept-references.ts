/**
 * Keeps copies of the objects that a Pod's defer containers refer to: the ConfigMaps and Secrets of their variables, and the Pod's pull
 * secrets. When a whole application is deleted, these objects may be deleted before the defer containers run.
 *
 * Invariants:
 * - A copy is updated when its object changes, and kept when its object is deleted.
 * - Once the Pod's volumes are being unmounted or removed, no copies are written for the Pod.
 * - Errors and logs contain no content of an object.
 */

import type { Pod } from '../../api/generated/types.ts';
import { coreResource } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Platform } from '../../platform/platform.ts';
import { createSerialByKey } from '../../platform/serial-by-key.ts';
import { environmentReferences } from '../container/environment-variables.ts';
import type { FollowedObjects } from '../volumes/followed-objects.ts';
import { type FileSource, fileSourceKey } from '../volumes/references.ts';
import type { VolumePort } from './executor.ts';
import { type Content, createKeptFiles, type KeptFilesOptions, type Reference } from './kept-files.ts';

export interface KeptReferences {
  /**
   * Makes the copies, once per Pod; later calls only wait for copies in progress. Omits objects that do not exist. If an object cannot be
   * copied, logs the error and retries in the background.
   */
  keep(pod: Pod): Promise<void>;
  /** Updates the copies of the object with this key, from fileSourceKey(), in the background. */
  changed(key: string): void;
  find<T extends KubeObject>(pod: Pod, resource: FileSource, name: string): Promise<T | undefined>;
  /** Returns `volumes` with an unmount() and a remove() that first end the copying for the Pod and wait for a copy in progress. */
  guard(volumes: VolumePort): VolumePort;
}

export interface KeptReferencesOptions extends Platform, KeptFilesOptions {
  client: Client;
  /** The caller passes changes of the followed objects to changed(). */
  objects: FollowedObjects;
  /** No copies are made for static Pods, since the API is never queried for them. */
  isStatic(pod: Pod): boolean;
  signal: AbortSignal;
}

export function createKeptReferences(options: KeptReferencesOptions): KeptReferences {
  const { client, objects, log, timers, signal } = options;
  const files = createKeptFiles(options);
  const pods = new Map<string, { pod: Pod; references: ReadonlyMap<string, Reference> }>();
  /** KeptFiles requires that the objects of a Pod are written one at a time. */
  const copying = createSerialByKey();

  async function copy(uid: string, reference: Reference): Promise<void> {
    const { pod } = pods.get(uid) ?? {};
    if (pod === undefined) return;
    const object = await readObject(client, reference, pod.metadata.namespace);
    if (object !== undefined && pods.has(uid)) await files.write(uid, reference, object);
  }

  const copyAll = (uid: string): Promise<void> =>
    copying.run(uid, async () => {
      for (const reference of pods.get(uid)?.references.values() ?? []) await copy(uid, reference);
    });

  const copies = createWorkQueue({ name: 'kept-references', process: copyAll, log, timers, signal });

  async function forget(uid: string): Promise<void> {
    pods.delete(uid);
    objects.unfollow(ownerOf(uid));
    await copying.pending(uid);
  }

  return {
    async keep(pod) {
      const { uid = '', name } = pod.metadata;
      if (pods.has(uid)) return copying.pending(uid);
      const references = referencesOf(pod);
      if (references.size === 0 || options.isStatic(pod)) return;
      pods.set(uid, { pod, references });
      // Follow the objects before the first copy is made, so that no change after the copy is missed.
      objects.follow(ownerOf(uid), new Set(references.keys()));
      await copyAll(uid).catch((error: Error) => {
        const fields = { pod: name, error: error.message };
        log.warn('cannot copy the objects that defer containers refer to, retrying', fields);
        copies.add(uid);
      });
    },
    changed(key) {
      for (const [uid, { references }] of pods) if (references.has(key)) copies.add(uid);
    },
    find: (pod, resource, name) => files.read(uidOf(pod), { resource, name }),
    guard: (volumes) => ({
      ...volumes,
      unmount: (uid, abort) => forget(uid).then(() => volumes.unmount(uid, abort)),
      remove: (uid, abort) => forget(uid).then(() => volumes.remove(uid, abort)),
    }),
  };
}

const ownerOf = (uid: string): string => `kept/${uid}`;

async function readObject(
  client: Client,
  { resource, name }: Reference,
  namespace: string | undefined,
): Promise<(KubeObject & Content) | undefined> {
  const api = client.resource<KubeObject & Content>(coreResource(resource));
  try {
    return await api.get(name, namespace);
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    return undefined;
  }
}

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
