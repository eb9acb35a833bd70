/**
 * Implements the admission steps that need other objects: the namespace of an object, the ServiceAccount, PriorityClass and
 * RuntimeClass of a Pod, the StorageClass of a claim, and the other PriorityClasses of a PriorityClass. Also admits mirror Pods, and
 * determines which objects must never be deleted.
 * Source: upstream's admission plugins NamespaceLifecycle, ServiceAccount, Priority, RuntimeClass, DefaultStorageClass and
 * PersistentVolumeClaimResize (behavior and wording).
 */
import { growthRefusal } from '../../../api/core/v1/persistent-volume-claim/validation.ts';
import {
  admitPriority,
  admitServiceAccount,
  defaultPriorityClass,
  serviceAccountNameOf,
  systemPriorities,
} from '../../../api/core/v1/pod/admission.ts';
import { admitMirrorPod, isMirrorPod } from '../../../api/core/v1/pod/mirror.ts';
import { admitRuntimeClass } from '../../../api/core/v1/pod/runtime-class.ts';
import type {
  Namespace,
  PersistentVolumeClaim,
  Pod,
  PriorityClass,
  RuntimeClass,
  StorageClass,
} from '../../../api/generated/types.ts';
import { defaultClassName } from '../../../api/storage.k8s.io/v1/storage-class/index.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { ApiError, forbidden, notFound } from '../../../machinery/status.ts';
import type { UserInfo } from '../../../ports/request.ts';
import type { Compare } from '../../../store/store.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import { revisionOf } from '../../cache/stored-object.ts';
import type { RegistryContext } from '../context.ts';
import { randomSuffix } from '../random-names.ts';
import type { Resource } from '../resources.ts';
import { awaitServiceAccount } from './service-account.ts';

const NAMESPACES_PREFIX = resourcePrefix('', 'namespaces');
const PRIORITY_CLASSES_PREFIX = resourcePrefix('scheduling.k8s.io', 'priorityclasses');
const RUNTIME_CLASSES_PREFIX = resourcePrefix('node.k8s.io', 'runtimeclasses');
const STORAGE_CLASSES_PREFIX = resourcePrefix('storage.k8s.io', 'storageclasses');

/** Returns why the object must never be deleted; undefined if it may be deleted. */
export function deletionRefusal({ kind }: Resource, name: string): string | undefined {
  if (kind.group === '' && kind.kind === 'Namespace' && IMMORTAL_NAMESPACES.has(name))
    return 'this namespace may not be deleted';
  if (kind.kind === 'PriorityClass' && systemPriorities[name] !== undefined)
    return 'this is a system priority class and cannot be deleted';
  return undefined;
}

/** The namespaces that cannot be deleted. As in upstream, kube-node-lease is not among them. */
export const IMMORTAL_NAMESPACES: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

/**
 * Throws 404 if the object's namespace does not exist, and 403 if the namespace is terminating. Returns a condition for the
 * transaction that writes the object, which requires that the namespace is unchanged.
 */
export function admitNamespace({ cache }: RegistryContext, resource: Resource, object: KubeObject): Compare {
  const name = object.metadata.namespace ?? '';
  const key = objectKey(NAMESPACES_PREFIX, undefined, name);
  const namespace = cache.get(key) as Namespace | undefined;
  if (namespace === undefined) throw notFound({ group: '', resource: 'namespaces' }, name);
  if (namespace.status?.phase === 'Terminating' || namespace.metadata.deletionTimestamp !== undefined) {
    throw namespaceTerminating(resource, object, name);
  }
  return { key, modRevision: revisionOf(namespace) };
}

function namespaceTerminating(resource: Resource, { metadata }: KubeObject, namespace: string): ApiError {
  const cause = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { status } = forbidden(resource.groupResource, metadata.name || metadata.generateName || '', cause);
  const message = `namespace ${namespace} is being terminated`;
  const causes = [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }];
  return new ApiError({ ...status, details: { ...status.details, causes } });
}

/**
 * Sets the fields of a new Pod that follow from its ServiceAccount, PriorityClass and RuntimeClass. Only checks a mirror Pod.
 * Ignores other kinds. Throws 403 if one of these objects does not exist, if the Pod's priority or preemption policy differs from
 * the computed one, or if admitRuntimeClass() refuses the Pod; for a mirror Pod, if admitMirrorPod() refuses it. Only nodes may create
 * mirror Pods.
 */
export async function admitPod(
  context: RegistryContext,
  { kind, groupResource }: Resource,
  object: KubeObject,
  user: UserInfo,
) {
  if (kind.group !== '' || kind.kind !== 'Pod') return;
  const pod = object as Pod;
  if (isMirrorPod(pod)) {
    // The node already runs the static Pod of this mirror Pod, so the mirror Pod is checked but not changed.
    admitMirrorPod(pod, user.groups.includes('system:nodes'));
    return;
  }
  const { name = '', generateName = '', namespace = '' } = pod.metadata;
  const accountName = serviceAccountNameOf(pod);
  const account = await awaitServiceAccount(context, namespace, accountName);
  if (account === undefined) {
    const cause = `error looking up service account ${namespace}/${accountName}: serviceaccount "${accountName}" not found`;
    throw forbidden(groupResource, name || generateName, cause);
  }
  admitServiceAccount(pod, account, randomSuffix(context.randomBytes));
  admitPriority(pod, context.cache.list(PRIORITY_CLASSES_PREFIX) as PriorityClass[]);
  const className = pod.spec?.runtimeClassName ?? '';
  admitRuntimeClass(
    pod,
    context.cache.get(objectKey(RUNTIME_CLASSES_PREFIX, undefined, className)) as RuntimeClass | undefined,
  );
}

/**
 * Throws 403 if the object is a PriorityClass that would become a second default. Ignores other kinds. Called on create and update.
 */
export function admitPriorityClass({ cache }: RegistryContext, resource: Resource, object: KubeObject): void {
  const { kind, groupResource } = resource;
  if (kind.group !== 'scheduling.k8s.io' || kind.kind !== 'PriorityClass') return;
  const { globalDefault, metadata } = object as PriorityClass;
  if (globalDefault !== true) return;
  const others = (cache.list(PRIORITY_CLASSES_PREFIX) as PriorityClass[]).filter(
    (other) => other.metadata.name !== metadata.name,
  );
  const other = defaultPriorityClass(others)?.metadata.name;
  if (other === undefined) return;
  const cause = `PriorityClass ${other} is already marked as default. Only one default can exist`;
  throw forbidden(groupResource, metadata.name, cause);
}

/**
 * Sets the default StorageClass, if there is one, in a PersistentVolumeClaim without a storageClassName. An empty storageClassName means
 * that the claim requests no class, and is kept. Ignores other kinds.
 */
export function admitClaim({ cache }: RegistryContext, { kind }: Resource, object: KubeObject): void {
  if (kind.group !== '' || kind.kind !== 'PersistentVolumeClaim') return;
  const { spec } = object as PersistentVolumeClaim;
  if (spec === undefined || spec.storageClassName !== undefined) return;
  const name = defaultClassName(cache.list(STORAGE_CLASSES_PREFIX) as StorageClass[]);
  if (name !== undefined) spec.storageClassName = name;
}

/**
 * Throws 403 if the object is a PersistentVolumeClaim that requests more storage than `old`, because lifepod's volumes cannot be
 * resized. Ignores other kinds. Called on update, after validation.
 */
export function admitGrowth({ cache }: RegistryContext, resource: Resource, object: KubeObject, old: KubeObject): void {
  const { kind, groupResource } = resource;
  if (kind.group !== '' || kind.kind !== 'PersistentVolumeClaim') return;
  const claim = object as PersistentVolumeClaim;
  const key = objectKey(STORAGE_CLASSES_PREFIX, undefined, claim.spec?.storageClassName ?? '');
  const cause = growthRefusal(claim, old as PersistentVolumeClaim, cache.get(key) as StorageClass | undefined);
  if (cause !== undefined) throw forbidden(groupResource, claim.metadata.name, cause);
}
