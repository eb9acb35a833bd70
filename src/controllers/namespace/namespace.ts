/**
 * Deletes the content of a terminating namespace, then removes this controller's finalizer from the namespace. Pods are deleted first.
 * Other objects follow when no Pod is left, because Pods use them until they have ended.
 *
 * Reads: namespaces, and the objects in terminating namespaces. Writes: the objects in terminating namespaces (delete; the condition
 * DeletionReason of Pods with defer containers), the status of these namespaces and, last, their spec.finalizers.
 * Source: upstream's namespaced_resources_deleter of v1.33 (behavior; KEP-5080), which repeats the deletion instead of waiting for events.
 */
import type { Namespace, Pod } from '../../api/generated/types.ts';
import { NAMESPACES, PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import type { ControllerOptions } from '../controller.ts';
import { hasDeferContainers, ownerDeleted } from '../ownership/owner-deleted.ts';
import { changedConditions, type Remains } from './conditions.ts';

const FINALIZER = 'kubernetes';

interface Remaining {
  ref: ResourceRef;
  objects(): readonly KubeObject[];
}

interface Wait {
  end: AbortController;
  /** By resource; undefined until the objects of all resources are known. */
  remaining: readonly Remaining[] | undefined;
}

export interface NamespaceControllerOptions extends ControllerOptions {
  /** Returns the resources whose objects are deleted with their namespace. The served resources may change. */
  resources(): readonly ResourceRef[];
}

export async function startNamespaceController(options: NamespaceControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal, resources } = options;
  const queue = createWorkQueue({ name: 'namespace', process: reconcile, log, timers, signal });
  const waits = new Map<string, Wait>();
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
    const left = (waits.get(name)?.remaining ?? []).map(({ ref, objects }) => ({ ref, objects: objects() }));
    if (left.length > 0 && left.every(({ objects }) => objects.length > 0))
      return report(client, name, { left, errors: [] }, timers.now());
    endWait(name);
    const remains = await deleteContent(client, resources(), name, timers.now());
    await report(client, name, remains, timers.now());
    if (remains.errors.length > 0) throw new Error(remains.errors.join(', '));
    if (remains.left.length === 0) return finalize(client, name);
    startWait(
      name,
      remains.left.map(({ ref }) => ref),
    );
  }

  /** Queues the namespace again whenever a remaining object is deleted or its finalizers change. */
  function startWait(namespace: string, refs: readonly ResourceRef[]): void {
    const wait: Wait = { end: new AbortController(), remaining: undefined };
    waits.set(namespace, wait);
    const until = AbortSignal.any([signal, wait.end.signal]);
    const again = (): void => {
      if (!until.aborted && wait.remaining !== undefined) queue.add(namespace);
    };
    const updated = ({ metadata }: KubeObject, old: KubeObject): void => {
      if (!sameNames(metadata.finalizers, old.metadata.finalizers)) again();
    };
    // These informers are not shared, because they follow only one namespace, and perhaps kinds that no other component follows.
    const options = { namespace, log, timers, signal: until };
    const informers = refs.map((ref) => createInformer(client.resource(ref), options, { deleted: again, updated }));
    void Promise.all(informers.map(({ synced }) => synced)).then(() => {
      wait.remaining = informers.map((informer, index) => ({
        ref: refs[index] as ResourceRef,
        objects: () => informer.list(),
      }));
      again();
    });
  }

  function endWait(namespace: string): void {
    waits.get(namespace)?.end.abort();
    waits.delete(namespace);
  }
}

const sameNames = (a: readonly string[] = [], b: readonly string[] = []): boolean => a.join() === b.join();

const isPods = ({ group, resource }: ResourceRef): boolean => group === PODS.group && resource === PODS.resource;

async function deleteContent(
  client: Client,
  resources: readonly ResourceRef[],
  namespace: string,
  now: Millis,
): Promise<Remains> {
  const pods = await deleteAll(client, resources.filter(isPods), namespace, now);
  if (pods.left.length > 0 || pods.errors.length > 0) return pods;
  const others = resources.filter((ref) => !isPods(ref));
  return deleteAll(client, others, namespace, now);
}

async function deleteAll(
  client: Client,
  resources: readonly ResourceRef[],
  namespace: string,
  now: Millis,
): Promise<Remains> {
  const left: { ref: ResourceRef; objects: KubeObject[] }[] = [];
  const errors: string[] = [];
  for (const ref of resources) {
    try {
      const objects = await deleteObjects(client, ref, namespace, now);
      if (objects.length > 0) left.push({ ref, objects });
    } catch (error) {
      errors.push((error as Error).message);
    }
  }
  return { left, errors };
}

/**
 * Deletes the objects of the resource in the namespace. Resolves with the objects that remain, because they end gracefully or have
 * finalizers.
 */
async function deleteObjects(client: Client, ref: ResourceRef, namespace: string, now: Millis): Promise<KubeObject[]> {
  const { items } = await client.api.list(ref, { namespace });
  if (items.length === 0) return [];
  if (isPods(ref)) await announce(client, items, now);
  // Do not orphan dependents: they are in the same namespace and are deleted as well.
  await client.api.deleteCollection(ref, { namespace, propagationPolicy: 'Background' });
  return (await client.api.list(ref, { namespace })).items;
}

async function announce(client: Client, pods: readonly Pod[], now: Millis): Promise<void> {
  const status = { conditions: [ownerDeleted('Namespace controller: deleting because the namespace is deleted', now)] };
  for (const pod of pods) {
    const { name, namespace, uid, deletionTimestamp } = pod.metadata;
    if (deletionTimestamp !== undefined || !hasDeferContainers(pod)) continue;
    try {
      const type = 'application/strategic-merge-patch+json';
      await client.resource<Pod>(PODS).patch(name, namespace, type, { metadata: { uid }, status }, 'status');
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }
}

async function report(client: Client, name: string, remains: Remains, now: Millis): Promise<void> {
  const namespaces = client.resource<Namespace>(NAMESPACES);
  try {
    const { metadata, status } = await namespaces.get(name);
    const conditions = changedConditions(status?.conditions ?? [], remains, now);
    if (conditions.length === 0) return;
    const change = { metadata: { uid: metadata.uid }, status: { conditions } };
    await namespaces.patch(name, undefined, 'application/strategic-merge-patch+json', change, 'status');
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}

/** Removes this controller's finalizer from the namespace. The API server deletes the namespace when no finalizer is left. */
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
