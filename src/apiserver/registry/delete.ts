/**
 * delete and deleteCollection: at once, gracefully, or when the last finalizer is removed.
 * Source: upstream's rest.BeforeDelete and generic registry (behavior and wording).
 */
import type { Namespace } from '../../api/generated/types.ts';
import type { KubeList, KubeObject, ObjectMeta, Status } from '../../machinery/meta.ts';
import { conflict, forbidden, isApiError, methodNotAllowed } from '../../machinery/status.ts';
import { formatTime, LAST_TIME, type Millis, parseTime } from '../../machinery/time.ts';
import type { DeleteOptions, ListOptions } from '../../ports/backend.ts';
import { permanence } from './admission/admission.ts';
import { type Change, modify } from './commit.ts';
import type { RegistryContext } from './context.ts';
import { keyOf, listObjects } from './reads/list.ts';
import type { Resource } from './resources.ts';

export async function deleteObject(
  context: RegistryContext,
  resource: Resource,
  at: { namespace: string | undefined; name: string },
  options: DeleteOptions,
): Promise<KubeObject | Status> {
  const { kind, groupResource } = resource;
  if (kind.createOnly) throw methodNotAllowed();
  const stays = permanence(resource, at.name);
  if (stays !== undefined) throw forbidden(groupResource, at.name, stays);
  const target = { key: keyOf(resource, at.namespace, at.name), name: at.name, dryRun: options.dryRun };
  const { action, object } = await modify(context, resource, target, (old) =>
    deletionOf(resource, old, options, context.timers.now()),
  );
  return action === 'delete' && !kind.returnsDeletedObject ? deleted(resource, object) : object;
}

const deleted = ({ groupResource }: Resource, { metadata }: KubeObject): Status => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: {
    name: metadata.name,
    group: groupResource.group || undefined,
    kind: groupResource.resource,
    uid: metadata.uid,
  },
});

function deletionOf(resource: Resource, old: KubeObject, options: DeleteOptions, now: Millis): Change {
  checkPreconditions(resource, old.metadata, options);
  // Source: v1.33 treats a negative grace period as one second.
  const requested = options.gracePeriodSeconds;
  const gracePeriodSeconds = requested !== undefined && requested < 0 ? 1 : requested;
  const decision = resource.kind.deletion?.(old, { ...options, gracePeriodSeconds }, { now }) ?? { now: true };
  if (!decision.now) return graceful(old, decision.graceSeconds, gracePeriodSeconds !== undefined, now);
  if ((old.metadata.finalizers ?? []).length === 0) return { action: 'delete' };
  return waitForFinalizers(old, now);
}

/** Throws 409 if the object does not match the preconditions. */
export function checkPreconditions({ kind }: Resource, metadata: ObjectMeta, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions ?? {};
  // Upstream uses the kind here, where other conflicts use the resource.
  const named = { group: kind.group, resource: kind.kind };
  if (uid !== undefined && uid !== metadata.uid) {
    const text = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`;
    throw conflict(named, metadata.name, text);
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const text = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`;
    throw conflict(named, metadata.name, text);
  }
}

const changed = (old: KubeObject, metadata: Partial<ObjectMeta>): Change => ({
  action: 'put',
  object: { ...old, metadata: { ...old.metadata, ...metadata } },
});

/** The first deletion changes the desired state of the object. */
const bumpedGeneration = ({ generation }: ObjectMeta): Partial<ObjectMeta> =>
  generation === undefined || generation === 0 ? {} : { generation: generation + 1 };

/** A namespace shows Terminating as soon as it is deleted: from then on nothing is created in it. */
function terminatingNamespace(old: KubeObject): KubeObject {
  if (old.apiVersion !== 'v1' || old.kind !== 'Namespace') return old;
  const namespace = old as Namespace;
  return { ...namespace, status: { ...namespace.status, phase: 'Terminating' } } as KubeObject;
}

/** Sets the end of the grace period. A later delete can only shorten it. */
function graceful(old: KubeObject, graceSeconds: number, isRequested: boolean, now: Millis): Change {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = old.metadata;
  if (deletionTimestamp === undefined) {
    return changed(terminatingNamespace(old), {
      deletionTimestamp: formatTime(now + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
      ...bumpedGeneration(old.metadata),
    });
  }
  if (!isRequested || graceSeconds >= deletionGracePeriodSeconds) return { action: 'keep' };
  const before = parseTime(deletionTimestamp) ?? now;
  // LAST_TIME stands for any later time, so the start of the period cannot be computed from it.
  const start = before >= LAST_TIME ? now : before - deletionGracePeriodSeconds * 1000;
  const end = start + graceSeconds * 1000;
  // A period that has already ended is not moved into the past: one second remains to end the object.
  const shortened = end < now ? { end: now, graceSeconds: Math.min(graceSeconds, 1) } : { end, graceSeconds };
  return changed(old, {
    deletionTimestamp: formatTime(shortened.end),
    deletionGracePeriodSeconds: shortened.graceSeconds,
  });
}

function waitForFinalizers(old: KubeObject, now: Millis): Change {
  const { deletionTimestamp, deletionGracePeriodSeconds } = old.metadata;
  const end = parseTime(deletionTimestamp);
  if (end !== undefined && end <= now && deletionGracePeriodSeconds === 0) return { action: 'keep' };
  return changed(old, {
    deletionTimestamp: end === undefined || end > now ? formatTime(now) : deletionTimestamp,
    deletionGracePeriodSeconds: 0,
    ...(end === undefined ? bumpedGeneration(old.metadata) : {}),
  });
}

/** Deletes the listed objects and returns the list. Objects that no longer exist are skipped. */
export async function deleteObjects(
  context: RegistryContext,
  resource: Resource,
  options: ListOptions & DeleteOptions,
): Promise<KubeList> {
  const list = await listObjects(context, resource, options);
  const { preconditions: _, ...each } = options;
  for (const { metadata } of list.items) {
    try {
      await deleteObject(context, resource, { namespace: metadata.namespace, name: metadata.name }, each);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
  return list;
}
