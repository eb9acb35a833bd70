/**
 * What a new object needs of other objects: its namespace, and for a Pod its ServiceAccount.
 * Source: upstream's admission plugins NamespaceLifecycle, ServiceAccount and Priority (behaviour and wording).
 */
import { admitPriority, admitServiceAccount, serviceAccountNameOf } from '../../api/core/v1/pod/admission.ts';
import { admitMirrorPod, isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import type { Namespace, Pod, ServiceAccount } from '../../api/generated/types.ts';
import type { UserInfo } from '../../machinery/backend.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { ApiError, forbidden, notFound } from '../../machinery/status.ts';
import type { Compare } from '../../store/store.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import { revisionOf } from '../cache/stored-object.ts';
import type { RegistryContext } from './context.ts';
import { randomSuffix } from './random-names.ts';
import type { Resource } from './resources.ts';

const NAMESPACES_PREFIX = resourcePrefix('', 'namespaces');
const SERVICE_ACCOUNTS_PREFIX = resourcePrefix('', 'serviceaccounts');

/** How long a new Pod waits for its ServiceAccount: a new namespace gets one a moment later. */
const SERVICE_ACCOUNT_WAIT_MILLIS = 2000;

/** Namespaces that cannot be deleted. */
export const IMMORTAL_NAMESPACES: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

/** Throws 404 or 403 unless the object's namespace takes new content; the result holds while that stays true. */
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

/** Gives a new Pod what its ServiceAccount and priority class bring; nothing for other kinds. Throws 403. */
export async function admitPod(
  context: RegistryContext,
  { kind, groupResource }: Resource,
  object: KubeObject,
  user: UserInfo | undefined,
) {
  if (kind.group !== '' || kind.kind !== 'Pod') return;
  const pod = object as Pod;
  if (isMirrorPod(pod)) {
    // The node has begun to run it as it is: nothing is added.
    admitMirrorPod(pod, user === undefined || user.groups.includes('system:nodes'));
    return;
  }
  const { name = '', generateName = '', namespace = '' } = pod.metadata;
  const accountName = serviceAccountNameOf(pod);
  const account = await serviceAccount(context, namespace, accountName);
  if (account === undefined) {
    const cause = `error looking up service account ${namespace}/${accountName}: serviceaccount "${accountName}" not found`;
    throw forbidden(groupResource, name || generateName, cause);
  }
  admitServiceAccount(pod, account, randomSuffix(context.randomBytes));
  admitPriority(pod);
}

function serviceAccount(
  { cache, timers }: RegistryContext,
  namespace: string,
  name: string,
): Promise<ServiceAccount | undefined> {
  const key = objectKey(SERVICE_ACCOUNTS_PREFIX, namespace, name);
  const find = (): ServiceAccount | undefined => cache.get(key) as ServiceAccount | undefined;
  const found = find();
  if (found !== undefined) return Promise.resolve(found);
  return new Promise((resolve) => {
    const settle = (): void => {
      unsubscribe();
      timer.cancel();
      resolve(find());
    };
    const unsubscribe = cache.subscribe(SERVICE_ACCOUNTS_PREFIX, namespace, cache.revision(), () => {
      if (find() !== undefined) settle();
    });
    const timer = timers.at(timers.now() + SERVICE_ACCOUNT_WAIT_MILLIS, settle);
  });
}
