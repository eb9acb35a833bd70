/**
 * The writes of the garbage collector. A write of the examined object fails with 409 Conflict if the object has been replaced; with a
 * resourceVersion, also if it has changed. Then the object is examined again.
 * Source: operations.go and patch.go of v1.33's garbage collector (behavior).
 */
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import { hasDeferContainers, isAnnounced, notDeleted, ownerDeleted } from '../ownership/owner-deleted.ts';

const BY_UID = 'application/strategic-merge-patch+json';
const MESSAGE = 'Garbage collector: deleting because no owner is left';

/** An object as read from the API, with its resource. */
export interface Target {
  ref: ResourceRef;
  object: KubeObject;
}

/** A patch with this metadata fails if the object has changed since it was read. */
const unchanged = ({ metadata: { uid, resourceVersion } }: KubeObject) => ({ uid, resourceVersion });

const patch = ({ api }: Client, { ref, object: { metadata } }: Target, change: object, subresource?: string) =>
  api.patch(ref, metadata.namespace, metadata.name, BY_UID, change, { subresource });

const isPod = ({ ref }: Target): boolean => ref.resource === PODS.resource && ref.group === PODS.group;

export async function removeOwners(client: Client, target: Target, uids: readonly string[]): Promise<void> {
  const ownerReferences = uids.map((uid) => ({ $patch: 'delete', uid }));
  await patch(client, target, { metadata: { uid: uidOf(target.object), ownerReferences } });
}

/** Removes the dependent's reference to the owner. Does nothing if the dependent no longer exists. */
export async function orphan(
  { api }: Client,
  ref: ResourceRef,
  dependent: { namespace: string | undefined; name: string; uid: string },
  ownerUid: string,
): Promise<void> {
  const { namespace, name, uid } = dependent;
  const change = { metadata: { uid, ownerReferences: [{ $patch: 'delete', uid: ownerUid }] } };
  // A conflict means that another object has the name.
  await unlessChanged(api.patch(ref, namespace, name, BY_UID, change));
}

export async function removeFinalizer({ api }: Client, { ref, object }: Target, finalizer: string): Promise<void> {
  const { name, namespace, finalizers = [] } = object.metadata;
  if (!finalizers.includes(finalizer)) return;
  const kept = finalizers.filter((each) => each !== finalizer);
  const change = { metadata: { ...unchanged(object), finalizers: kept } };
  await api.patch(ref, namespace, name, 'application/merge-patch+json', change);
}

/** Deletes the object unless it has changed since it was read. A Pod with defer containers first gets the condition DeletionReason. */
export async function deleteUnchanged(
  client: Client,
  target: Target,
  propagationPolicy: string,
  now: Millis,
): Promise<void> {
  const object = await announce(client, target, now);
  const { name, namespace } = object.metadata;
  await client.api.delete(target.ref, namespace, name, { propagationPolicy, preconditions: unchanged(object) });
}

/** Sets blockOwnerDeletion to false in all owner references, so that the object stops blocking the deletion of its owners. */
export async function unblock(client: Client, target: Target): Promise<void> {
  const { ownerReferences = [] } = target.object.metadata;
  const blocking = ownerReferences.filter(({ blockOwnerDeletion }) => blockOwnerDeletion === true);
  if (blocking.length === 0) return;
  const changed = blocking.map((owner) => ({ ...owner, blockOwnerDeletion: false }));
  await patch(client, target, { metadata: { ...unchanged(target.object), ownerReferences: changed } });
}

async function announce(client: Client, target: Target, now: Millis): Promise<KubeObject> {
  const pod = target.object as Pod;
  if (!isPod(target) || !hasDeferContainers(pod) || isAnnounced(pod, MESSAGE)) return pod;
  const status = { conditions: [ownerDeleted(MESSAGE, now)] };
  return patch(client, target, { metadata: unchanged(pod), status }, 'status');
}

/** Whether the garbage collector has announced the deletion of the Pod, but the Pod is not being deleted yet. */
export const isCondemned = (target: Target): boolean =>
  isPod(target) && isAnnounced(target.object as Pod, MESSAGE) && target.object.metadata.deletionTimestamp === undefined;

/** Revokes the announcement of the deletion if there is one, because the Pod has an owner again. */
export async function reprieve(client: Client, target: Target, now: Millis): Promise<void> {
  if (!isCondemned(target)) return;
  const status = { conditions: [notDeleted(MESSAGE, now)] };
  await patch(client, target, { metadata: { uid: uidOf(target.object) }, status }, 'status');
}
