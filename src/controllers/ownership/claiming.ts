/**
 * Adopts and releases objects as claim() decides.
 * Source: AdoptPod and ReleasePod of pkg/controller/controller_ref_manager.go of v1.33 (behavior and wording).
 */
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import type { LabelSelectorObject } from '../../machinery/labels.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Claim, claim } from './claim.ts';
import { controllerReference, controllerUids, type OwnerKind, orphanKey } from './owner.ts';

/** The type of patches in which the UID identifies an entry of ownerReferences. */
const MERGE = 'application/strategic-merge-patch+json';

export interface Claimant {
  owner: KubeObject;
  kind: OwnerKind;
  /** Reads the owner from the API, not from a cache. */
  fresh: () => Promise<KubeObject>;
  /** A finalizer that adopted objects get. */
  finalizer?: string;
}

/**
 * Adopts and releases objects of the cache as claim() decides. Resolves with the objects that the owner then controls, once the cache
 * contains the writes. Rejects like executeClaim().
 */
export async function claimDependents<T extends KubeObject>(
  client: ResourceClient<T>,
  copy: Informer<T>,
  claimant: Claimant,
  selector: LabelSelectorObject | undefined,
  isMember?: (object: T) => boolean,
): Promise<T[]> {
  const { owner } = claimant;
  const orphans = copy.by(controllerUids, orphanKey(owner.metadata.namespace));
  const candidates = [...copy.by(controllerUids, uidOf(owner)), ...orphans];
  const owned = await executeClaim(client, claimant, claim(owner, selector, candidates, isMember));
  await Promise.all(owned.map(({ metadata }) => copy.reached(metadata.resourceVersion)));
  return owned;
}

/**
 * Releases and adopts the objects of the claim. Resolves with the objects that the owner then controls. Before an adoption, reads the owner
 * from the API, and rejects if the owner has been replaced or is being deleted.
 */
export async function executeClaim<T extends KubeObject>(
  client: ResourceClient<T>,
  claimant: Claimant,
  { owned, adopt, release }: Claim<T>,
): Promise<T[]> {
  for (const object of release) await unlessGone(releaseObject(client, object, claimant.owner));
  if (adopt.length === 0) return owned;
  await checkOwner(claimant);
  const adopted: T[] = [];
  for (const object of adopt) {
    const patched = await unlessGone(adoptObject(client, object, claimant));
    if (patched !== undefined) adopted.push(patched);
  }
  return [...owned, ...adopted];
}

async function checkOwner({ owner, fresh }: Claimant): Promise<void> {
  const { namespace, name, uid } = owner.metadata;
  const { metadata } = await fresh();
  if (metadata.uid !== uid)
    throw new Error(`original ${namespace}/${name} is gone: got uid ${metadata.uid}, wanted ${uid}`);
  if (metadata.deletionTimestamp !== undefined)
    throw new Error(`${namespace}/${name} has just been deleted at ${metadata.deletionTimestamp}`);
}

function adoptObject<T extends KubeObject>(
  client: ResourceClient<T>,
  object: T,
  { owner, kind, finalizer }: Claimant,
): Promise<T> {
  // The API rejects the patch if another controller has adopted the object meanwhile, because an object has at most one controller.
  const finalizers = finalizer === undefined ? {} : { finalizers: [finalizer] };
  const metadata = { uid: uidOf(object), ownerReferences: [controllerReference(owner, kind)], ...finalizers };
  return client.patch(object.metadata.name, object.metadata.namespace, MERGE, { metadata });
}

function releaseObject<T extends KubeObject>(client: ResourceClient<T>, object: T, owner: KubeObject): Promise<T> {
  const metadata = { uid: uidOf(object), ownerReferences: [{ $patch: 'delete', uid: uidOf(owner) }] };
  return client.patch(object.metadata.name, object.metadata.namespace, MERGE, { metadata });
}

async function unlessGone<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (['NotFound', 'Conflict', 'Invalid'].some((reason) => isApiError(error, reason as 'NotFound'))) return undefined;
    throw error;
  }
}
