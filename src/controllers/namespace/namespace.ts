/**
 * Deletes the content of a namespace that is being deleted, then removes this controller's finalizer from the namespace.
 *
 * Reads: namespaces, and the objects in terminating namespaces. Writes: the objects in terminating namespaces (delete, one
 * resource after the other), the status of these namespaces and, last, their spec.finalizers.
 * Source: upstream's namespaced_resources_deleter of v1.33 (behavior, condition and wording), except that upstream waits only
 * for the Pods before it deletes other objects.
 */
import type { Namespace, NamespaceCondition } from '../../api/generated/types.ts';
import { NAMESPACES } from '../../api/resources.ts';
import type { Client, ResourceClient } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import type { ControllerOptions } from '../controller.ts';

/** This controller's entry in spec.finalizers. */
const FINALIZER = 'kubernetes';

export interface NamespaceControllerOptions extends ControllerOptions {
  /**
   * Returns the resources whose objects are deleted, in this order: each only once no object of the previous resource is left. The served
   * resources may change.
   */
  resources(): readonly ResourceRef[];
}

export async function startNamespaceController(options: NamespaceControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal, resources } = options;
  const namespaceClient = client.resource<Namespace>(NAMESPACES);
  const queue = createWorkQueue({ name: 'namespace', process: reconcile, log, timers, signal });
  /** By the name of a terminating namespace: abort() ends the wait for the remaining objects of the namespace. */
  const waits = new Map<string, AbortController>();
  const consider = (namespace: Namespace): void => {
    if (namespace.metadata.deletionTimestamp !== undefined) queue.add(namespace.metadata.name);
  };

  const namespaces = informers.follow<Namespace>(
    NAMESPACES,
    { signal },
    {
      added: consider,
      updated(namespace, old) {
        // This controller's own status writes must not queue the namespace again.
        if (old.metadata.deletionTimestamp === undefined) consider(namespace);
      },
      deleted: ({ metadata }) => endWait(metadata.name),
    },
  );
  await namespaces.synced;

  async function reconcile(name: string): Promise<void> {
    const namespace = namespaces.get(undefined, name);
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    if (!(namespace.spec?.finalizers ?? []).includes(FINALIZER)) return;
    endWait(name);
    for (const ref of resources()) {
      const left = await deleteAll(client, ref, name);
      if (left.length === 0) continue;
      await reportRemaining(namespaceClient, name, remaining(ref, left.length), timers.now());
      waitUntilGone(ref, name);
      return;
    }
    await finalize(client, name);
  }

  function waitUntilGone(ref: ResourceRef, namespace: string): void {
    const wait = new AbortController();
    waits.set(namespace, wait);
    const again = (): void => {
      if (!wait.signal.aborted && left.list().length === 0) queue.add(namespace);
    };
    const until = AbortSignal.any([signal, wait.signal]);
    // Not shared: only this wait follows the objects of the namespace, which may be of a kind that nothing else follows.
    const left = createInformer(client.resource(ref), { namespace, log, timers, signal: until }, { deleted: again });
    void left.synced.then(again);
  }

  function endWait(namespace: string): void {
    waits.get(namespace)?.abort();
    waits.delete(namespace);
  }
}

/** Deletes all objects of the resource in the namespace. Returns those that remain, because they end gracefully or have finalizers. */
async function deleteAll({ api }: Client, ref: ResourceRef, namespace: string): Promise<KubeObject[]> {
  const found = await api.list(ref, { namespace });
  if (found.items.length === 0) return [];
  await api.deleteCollection(ref, { namespace });
  return (await api.list(ref, { namespace })).items;
}

async function reportRemaining(
  namespaces: ResourceClient<Namespace>,
  name: string,
  message: string,
  now: Millis,
): Promise<void> {
  const condition: NamespaceCondition = {
    type: 'NamespaceContentRemaining',
    status: 'True',
    reason: 'SomeResourcesRemain',
    message,
    lastTransitionTime: formatTime(now),
  };
  const change = { status: { conditions: [condition] } };
  await namespaces.patch(name, undefined, 'application/strategic-merge-patch+json', change, 'status');
}

/** Removes this controller's finalizer. The API server deletes the namespace when the namespace has no finalizer any more. */
async function finalize(client: Client, name: string): Promise<void> {
  try {
    const namespace = await client.resource<Namespace>(NAMESPACES).get(name);
    const finalizers = (namespace.spec?.finalizers ?? []).filter((each) => each !== FINALIZER);
    const emptied = { ...namespace, spec: { ...namespace.spec, finalizers } } as Namespace;
    await client.api.update(NAMESPACES, emptied, { subresource: 'finalize' });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}

const remaining = ({ group, resource }: ResourceRef, count: number): string =>
  `Some resources are remaining: ${resource}.${group} has ${count} resource instances`;
