/**
 * Keeps an object with a fixed name in every active namespace, and optionally reverts changes by clients.
 *
 * Reads: namespaces, and the objects of that name. Writes: these objects (create, update).
 */
import type { Namespace } from '../api/generated/types.ts';
import { NAMESPACES } from '../api/resources.ts';
import { createWorkQueue } from '../client/work-queue.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { isApiError, isNamespaceTerminating } from '../machinery/status.ts';
import type { ControllerOptions } from './controller.ts';

export interface NamespaceObject<T extends KubeObject> {
  controller: string;
  resource: ResourceRef;
  name: string;
  make(namespace: string): T;
  /** Returns the corrected object, or undefined if `object` is correct. Without this function, changes are not reverted. */
  correct?(object: T): T | undefined;
}

/** Runs until the signal aborts. Resolves once the namespaces that exist at the start have been processed. */
export async function keepInNamespaces<T extends KubeObject>(
  { client, informers, timers, log, signal }: ControllerOptions,
  { controller, resource, name, make, correct }: NamespaceObject<T>,
): Promise<void> {
  const objectClient = client.resource<T>(resource);
  const queue = createWorkQueue({ name: controller, process: reconcile, log, timers, signal });
  const addNamespace = ({ metadata }: Namespace): void => queue.add(metadata.name);
  const addNamespaceOf = ({ metadata }: T): void => queue.add(metadata.namespace as string);

  const objects = informers.follow<T>(
    resource,
    { fieldSelector: `metadata.name=${name}`, signal },
    { updated: correct && addNamespaceOf, deleted: addNamespaceOf },
  );
  await objects.synced;
  const namespaces = informers.follow<Namespace>(
    NAMESPACES,
    { signal },
    { added: addNamespace, updated: addNamespace },
  );
  await namespaces.synced;
  await queue.idle();

  async function reconcile(namespace: string): Promise<void> {
    const found = namespaces.get(undefined, namespace);
    if (found === undefined || found.status?.phase === 'Terminating') return;
    const object = objects.get(namespace, name);
    try {
      if (object === undefined) await objectClient.create(make(namespace));
      else {
        const corrected = correct?.(object);
        if (corrected !== undefined) await objectClient.update(corrected);
      }
    } catch (error) {
      // The object exists already, or the object or its namespace was deleted: the informers receive these changes. Other errors, such as
      // an exceeded quota, are retried.
      if (!isApiError(error, 'AlreadyExists') && !isApiError(error, 'NotFound') && !isNamespaceTerminating(error))
        throw error;
    }
  }
}
