/**
 * The verbs delete and deletecollection. If the deletion is graceful (see KindDefinition.deletion()) or the object has finalizers, a delete
 * sets the deletionTimestamp and keeps the object. After the grace period, the update that removes the last finalizer removes the object
 * (see update.ts).
 * Source: upstream's rest.BeforeDelete and generic registry (behavior and wording).
 */
import type { KubeList, KubeObject, ObjectMeta, Status } from '../../machinery/meta.ts';
import { conflict, isApiError, methodNotAllowed } from '../../machinery/status.ts';
import { formatTime, LAST_TIME, type Millis, parseTime } from '../../machinery/time.ts';
import type { DeleteOptions, ListOptions } from '../../ports/backend.ts';
import { isInNodesGroup } from '../auth/authorization/node/node-identity.ts';
import { admissionRequest } from './admit.ts';
import { type Change, modify } from './commit.ts';
import type { RegistryContext, Sent } from './context.ts';
import { finalizersAfterDelete } from './propagation.ts';
import { keyOf, listObjects } from './reads/list.ts';
import type { Resource } from './resources.ts';

/**
 * Resolves to a Status if the object has been deleted and its kind does not return deleted objects; otherwise to the object. `isAdmitted`:
 * whether admission plugins have already handled the request, as for an eviction.
 */
export async function deleteObject(
  context: RegistryContext,
  resource: Resource,
  at: { namespace: string | undefined; name: string },
  options: Sent<DeleteOptions> & { isAdmitted?: boolean },
): Promise<KubeObject | Status> {
  const { kind } = resource;
  if (kind.createOnly) throw methodNotAllowed();
  warnOfDefault(resource, options);
  const chain = options.isAdmitted === true ? undefined : context.admission.chainFor(kind, undefined, 'DELETE');
  const target = {
    key: keyOf(resource, at.namespace, at.name),
    name: at.name,
    dryRun: options.dryRun,
    signal: options.request.signal,
  };
  const { action, object } = await modify(context, resource, target, async (old, { outside }) => {
    checkPreconditions(resource, old.metadata, options);
    await chain?.validate(admissionRequest(resource, { operation: 'DELETE', ...at, old }, options), outside);
    const change = deletionOf(resource, old, options, context.timers.now());
    return change.action === 'delete' ? deletionAlongside(context, resource, at, old, options) : change;
  });
  return action === 'delete' && !kind.returnsDeletedObject ? deleted(resource, object) : object;
}

/** Returns a deletion that also writes the changes of other objects that admission plugins request. */
export function deletionAlongside(
  context: RegistryContext,
  resource: Resource,
  { namespace, name }: { namespace: string | undefined; name: string },
  old: KubeObject,
  options: Sent<DeleteOptions>,
): Change {
  const chain = context.admission.chainFor(resource.kind, undefined, 'DELETE');
  const request = admissionRequest(resource, { operation: 'DELETE', namespace, name, old }, options);
  return { action: 'delete', alongside: () => chain?.alongside(request) ?? [] };
}

/** Warns a client that sends no propagation policy, if the default of the kind may surprise the client. */
function warnOfDefault({ kind: { propagation } }: Resource, { propagationPolicy, onWarning }: DeleteOptions): void {
  if (propagationPolicy !== undefined || typeof propagation !== 'object') return;
  if (propagation.warning !== undefined) onWarning?.(propagation.warning);
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

function deletionOf(resource: Resource, old: KubeObject, options: Sent<DeleteOptions>, now: Millis): Change {
  // As in v1.33, a negative grace period means one second.
  const requested = options.gracePeriodSeconds;
  const gracePeriodSeconds = requested !== undefined && requested < 0 ? 1 : requested;
  const context = { now, byNode: isInNodesGroup(options.request.user) };
  const decision = resource.kind.deletion?.(old, { ...options, gracePeriodSeconds }, context) ?? { now: true };
  const finalizers = finalizersOf(resource, old.metadata, options);
  if (!decision.now) {
    const isRequested = gracePeriodSeconds !== undefined;
    return graceful(resource, old, finalizers, decision.graceSeconds, isRequested, now);
  }
  return (finalizers ?? []).length === 0 ? { action: 'delete' } : waitForFinalizers(old, finalizers, now);
}

/**
 * Returns the finalizers after the request: the list of `metadata` itself if the request does not change them. If a graceful deletion has
 * set the grace period to 0, no further request changes them.
 */
function finalizersOf({ kind }: Resource, metadata: ObjectMeta, options: DeleteOptions): string[] | undefined {
  const { finalizers = [], deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  if (kind.deletion !== undefined && deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0)
    return metadata.finalizers;
  const wanted = finalizersAfterDelete(kind, finalizers, options);
  const isSame = wanted.length === finalizers.length && wanted.every((name) => finalizers.includes(name));
  return isSame ? metadata.finalizers : wanted;
}

/** Throws 409 Conflict if the metadata does not match the preconditions. */
export function checkPreconditions({ kind }: Resource, metadata: ObjectMeta, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions ?? {};
  // As in upstream, these conflicts name the kind, whereas other conflicts name the resource.
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

function changed(old: KubeObject, { finalizers, ...changes }: Partial<ObjectMeta>): Change {
  const { finalizers: _, ...metadata } = old.metadata;
  const kept = (finalizers ?? []).length === 0 ? {} : { finalizers };
  return { action: 'put', object: { ...old, metadata: { ...metadata, ...kept, ...changes } } };
}

/**
 * Returns the next generation, because setting the deletionTimestamp changes the desired state of the object. Returns no field if the
 * object has no generation.
 */
const bumpedGeneration = ({ generation }: ObjectMeta): Partial<ObjectMeta> =>
  generation === undefined || generation === 0 ? {} : { generation: generation + 1 };

/**
 * In a terminating object, a delete request can only shorten the grace period, and only if the request itself contains a grace period
 * (`isRequested`).
 */
function graceful(
  { kind }: Resource,
  old: KubeObject,
  finalizers: string[] | undefined,
  graceSeconds: number,
  isRequested: boolean,
  now: Millis,
): Change {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = old.metadata;
  if (deletionTimestamp === undefined) {
    return changed(kind.terminating?.(old) ?? old, {
      deletionTimestamp: formatTime(now + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
      finalizers,
      ...bumpedGeneration(old.metadata),
    });
  }
  if (!isRequested || graceSeconds >= deletionGracePeriodSeconds) return { action: 'keep' };
  const before = parseTime(deletionTimestamp) ?? now;
  // formatTime() replaces each time after LAST_TIME by LAST_TIME. So if the deletionTimestamp is LAST_TIME, the start of the grace period
  // is unknown, and the shorter period starts now.
  const start = before >= LAST_TIME ? now : before - deletionGracePeriodSeconds * 1000;
  const end = start + graceSeconds * 1000;
  // A shorter period that has already passed ends now.
  const shortened = end < now ? { end: now, graceSeconds: Math.min(graceSeconds, 1) } : { end, graceSeconds };
  return changed(old, {
    deletionTimestamp: formatTime(shortened.end),
    deletionGracePeriodSeconds: shortened.graceSeconds,
    finalizers,
  });
}

function waitForFinalizers(old: KubeObject, finalizers: string[] | undefined, now: Millis): Change {
  const { deletionTimestamp, deletionGracePeriodSeconds } = old.metadata;
  const end = parseTime(deletionTimestamp);
  const isWaiting = end !== undefined && end <= now && deletionGracePeriodSeconds === 0;
  if (isWaiting && finalizers === old.metadata.finalizers) return { action: 'keep' };
  return changed(old, {
    finalizers,
    deletionTimestamp: end === undefined || end > now ? formatTime(now) : deletionTimestamp,
    deletionGracePeriodSeconds: 0,
    ...(end === undefined ? bumpedGeneration(old.metadata) : {}),
  });
}

/**
 * Resolves to the objects as listed before the deletion. Skips objects that no longer exist. After another error, rejects and leaves the
 * remaining objects. As in upstream, the preconditions apply to each object.
 */
export async function deleteObjects(
  context: RegistryContext,
  resource: Resource,
  options: Sent<ListOptions & DeleteOptions>,
): Promise<KubeList> {
  const list = await listObjects(context, resource, options);
  warnOfDefault(resource, options);
  const silently = { ...options, onWarning: undefined };
  for (const { metadata } of list.items) {
    try {
      await deleteObject(context, resource, { namespace: metadata.namespace, name: metadata.name }, silently);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
  return list;
}
