/**
 * Finds the owners that must be reconciled after a change of an owner or a Pod.
 * Source: the event handlers of pkg/controller/replicaset/replica_set.go of v1.33 (behavior).
 */
import { isDeepStrictEqual } from 'node:util';
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import { labelSelectorMatcher } from '../../machinery/labels.ts';
import type { ControllerOptions } from '../controller.ts';
import { controllerOf } from '../ownership/owner.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import type { ReplicaKind, ReplicaOwner } from './replica-owner.ts';

export interface OwnerHandlers {
  /** Called with the key of each owner that must be reconciled: its namespace, `/` and its name. */
  changed(key: string): void;
  deleted(key: string): void;
}

const keyOf = ({ metadata }: ReplicaOwner): string => `${metadata.namespace}/${metadata.name}`;
const namespaceOf = ({ metadata }: ReplicaOwner): readonly string[] => [metadata.namespace ?? ''];

export function followOwners(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  kind: ReplicaKind,
  { changed, deleted }: OwnerHandlers,
): { owners: Informer<ReplicaOwner>; pods: Informer<Pod> } {
  const owners = informers.follow<ReplicaOwner>(
    kind.owner.resource,
    { signal },
    {
      added: (owner) => changed(keyOf(owner)),
      updated: (owner) => changed(keyOf(owner)),
      deleted: (owner) => deleted(keyOf(owner)),
    },
  );
  const controllerChanged = (pod: Pod): void => {
    const { name = '', uid } = controllerOf(pod) ?? {};
    const owner = uid === undefined ? undefined : owners.get(pod.metadata.namespace, name);
    if (owner !== undefined && owner.metadata.uid === uid) changed(keyOf(owner));
  };
  /** Queues the owners that may adopt the Pod. */
  const orphaned = (pod: Pod): void => {
    if (pod.metadata.deletionTimestamp !== undefined) return;
    for (const owner of owners.by(namespaceOf, pod.metadata.namespace ?? ''))
      if (labelSelectorMatcher(kind.selectorOf(owner))(pod.metadata.labels)) changed(keyOf(owner));
  };
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      added: (pod) => (controllerOf(pod) === undefined ? orphaned(pod) : controllerChanged(pod)),
      updated(pod, old) {
        const hasOther = controllerOf(pod)?.uid !== controllerOf(old)?.uid;
        if (hasOther) controllerChanged(old);
        else if (!isPodActive(pod) && !isPodActive(old)) return;
        if (controllerOf(pod) !== undefined) controllerChanged(pod);
        else if (hasOther || !isDeepStrictEqual(pod.metadata.labels, old.metadata.labels)) orphaned(pod);
      },
      deleted: controllerChanged,
    },
  );
  return { owners, pods };
}
