/**
 * Computes the conditions of a namespace that is being deleted.
 * Source: status_condition_utils.go of pkg/controller/namespace/deletion of v1.33 (types, reasons and wording).
 */
import type { NamespaceCondition } from '../../api/generated/types.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

export interface Remains {
  /** By resource: the objects that end gracefully or have finalizers. */
  left: readonly { ref: ResourceRef; objects: readonly KubeObject[] }[];
  errors: readonly string[];
}

type Content = Required<Pick<NamespaceCondition, 'type' | 'status' | 'reason' | 'message'>>;

const ok = (type: string, reason: string, message: string): Content => ({ type, status: 'False', reason, message });

const failed = (type: string, reason: string, message: string): Content => ({ type, status: 'True', reason, message });

function contentFailure({ errors }: Remains): Content {
  const type = 'NamespaceDeletionContentFailure';
  if (errors.length === 0)
    return ok(type, 'ContentDeleted', 'All content successfully deleted, may be waiting on finalization');
  const list = [...errors].sort().join(', ');
  return failed(
    type,
    'ContentDeletionFailed',
    `Failed to delete all resource types, ${errors.length} remaining: ${list}`,
  );
}

function contentRemaining({ left }: Remains): Content {
  const type = 'NamespaceContentRemaining';
  if (left.length === 0) return ok(type, 'ContentRemoved', 'All content successfully removed');
  const list = left.map(
    ({ ref: { group, resource }, objects }) => `${resource}.${group} has ${objects.length} resource instances`,
  );
  return failed(type, 'SomeResourcesRemain', `Some resources are remaining: ${list.sort().join(', ')}`);
}

function finalizersRemaining({ left }: Remains): Content {
  const type = 'NamespaceFinalizersRemaining';
  const finalizers = left.flatMap(({ objects }) => objects.flatMap(({ metadata }) => metadata.finalizers ?? []));
  if (finalizers.length === 0) return ok(type, 'ContentRemoved', 'All content successfully removed');
  const list = [...Map.groupBy(finalizers, (name) => name)].map(
    ([name, of]) => `${name} in ${of.length} resource instances`,
  );
  return failed(
    type,
    'SomeFinalizersRemain',
    `Some content in the namespace has finalizers remaining: ${list.sort().join(', ')}`,
  );
}

/**
 * Returns the conditions to write. The first two are never True, because the resources of a namespace are always known, unlike in upstream.
 */
export function changedConditions(
  old: readonly NamespaceCondition[],
  remains: Remains,
  now: Millis,
): NamespaceCondition[] {
  const wanted = [
    ok('NamespaceDeletionDiscoveryFailure', 'ResourcesDiscovered', 'All resources successfully discovered'),
    ok(
      'NamespaceDeletionGroupVersionParsingFailure',
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ),
    contentFailure(remains),
    contentRemaining(remains),
    finalizersRemaining(remains),
  ];
  return wanted.flatMap((condition) => {
    const known = old.find(({ type }) => type === condition.type);
    if (known?.status !== condition.status) return [{ ...condition, lastTransitionTime: formatTime(now) }];
    const isSame = known.reason === condition.reason && known.message === condition.message;
    return isSame ? [] : [{ ...condition, lastTransitionTime: known.lastTransitionTime ?? formatTime(now) }];
  });
}
