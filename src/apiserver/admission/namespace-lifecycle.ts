/**
 * Rejects new objects in a namespace that does not exist or is terminating. Unlike upstream, does not reject creates of subresources: the
 * Pods of a terminating namespace may still be evicted, and need tokens until their defer containers have ended.
 * Source: the plugin NamespaceLifecycle of v1.33 (behavior and wording).
 */
import type { Namespace } from '../../api/generated/types.ts';
import { NAMESPACES } from '../../api/resources.ts';
import { ApiError, forbidden, notFound } from '../../machinery/status.ts';
import type { Compare } from '../../store/store.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import { revisionOf } from '../cache/stored-object.ts';
import type { WatchCache } from '../cache/watch-cache.ts';
import type { AdmissionRequest, AdmissionTarget, PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

const PREFIX = resourcePrefix('', 'namespaces');

/** As in upstream, kube-node-lease can be deleted. */
const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

const isDelete = on(NAMESPACES, 'DELETE');
const isNewInNamespace = ({ kind, subresource, operation }: AdmissionTarget): boolean =>
  operation === 'CREATE' && subresource === '' && kind.namespaced && kind.outlivesNamespace !== true;

export const namespaceLifecycle: PluginFactory = ({ cache }) => ({
  name: 'NamespaceLifecycle',
  handles: (target) => isDelete(target) || isNewInNamespace(target),
  admit(request) {
    if (request.operation === 'CREATE') unchangedNamespace(cache, request);
  },
  validate({ operation, groupResource, name }) {
    if (operation === 'DELETE' && IMMORTAL.has(name))
      throw forbidden(groupResource, name, 'this namespace may not be deleted');
  },
  // The write fails if the namespace has changed since this check, so that no object is created after the namespace begins to terminate.
  guards: (request) => [unchangedNamespace(cache, request)],
});

function unchangedNamespace(cache: WatchCache, request: AdmissionRequest): Compare {
  const key = objectKey(PREFIX, undefined, request.namespace);
  const namespace = cache.get(key) as Namespace | undefined;
  if (namespace === undefined) throw notFound({ group: '', resource: 'namespaces' }, request.namespace);
  if (namespace.status?.phase === 'Terminating' || namespace.metadata.deletionTimestamp !== undefined)
    throw terminating(request);
  return { key, modRevision: revisionOf(namespace) };
}

function terminating({ groupResource, namespace, object }: AdmissionRequest): ApiError {
  const { name, generateName } = object?.metadata ?? {};
  const cause = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { status } = forbidden(groupResource, name || generateName || '', cause);
  const message = `namespace ${namespace} is being terminated`;
  const causes = [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }];
  return new ApiError({ ...status, details: { ...status.details, causes } });
}
