import { isDeepStrictEqual } from 'node:util';
import type { ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import type { ControllerOptions } from '../controller.ts';
import { dependentHandlers, keyOf } from '../ownership/dependent-handlers.ts';
import { claimTemplatesOf } from './claims.ts';

export interface Followed {
  sets: Informer<StatefulSet>;
  pods: Informer<Pod>;
  revisions: Informer<ControllerRevision>;
  claims: Informer<PersistentVolumeClaim>;
}

/** Index keys: the namespace, and the names of the StatefulSet's claims without the ordinals. */
const claimPrefixes = (set: StatefulSet): readonly string[] =>
  claimTemplatesOf(set).map(({ metadata }) => `${set.metadata.namespace}/${metadata.name}-${set.metadata.name}`);

/**
 * Follows StatefulSets, their Pods, ControllerRevisions and PersistentVolumeClaims. The callbacks get the key of a StatefulSet: its
 * namespace, `/` and its name.
 */
export function followStatefulSets(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  { changed, deleted }: { changed(key: string): void; deleted(key: string): void },
): Followed {
  const sets = informers.follow<StatefulSet>(
    STATEFUL_SETS,
    { signal },
    {
      added: (set) => changed(keyOf(set)),
      updated: (set) => changed(keyOf(set)),
      deleted: (set) => deleted(keyOf(set)),
    },
  );
  const selectorOf = ({ spec }: StatefulSet) => spec?.selector;
  const handlers = dependentHandlers({ kind: 'StatefulSet', owners: sets, selectorOf, changed });
  const claimChanged = ({ metadata }: PersistentVolumeClaim): void => {
    const prefix = metadata.name.replace(/-[0-9]+$/, '');
    for (const set of sets.by(claimPrefixes, `${metadata.namespace}/${prefix}`)) changed(keyOf(set));
  };
  const claims = informers.follow<PersistentVolumeClaim>(
    PERSISTENT_VOLUME_CLAIMS,
    { signal },
    {
      updated(claim, old) {
        if (!isDeepStrictEqual(ownership(claim), ownership(old))) claimChanged(claim);
      },
      deleted: claimChanged,
    },
  );
  const revisions = informers.follow<ControllerRevision>(CONTROLLER_REVISIONS, { signal }, handlers);
  return { sets, revisions, claims, pods: informers.follow<Pod>(PODS, { signal }, handlers) };
}

/**
 * The fields of a claim whose change requires a reconcile: the owners depend on the retention policy, and no Pod is created while its claim
 * is being deleted.
 */
const ownership = ({ metadata }: PersistentVolumeClaim) => [metadata.ownerReferences, metadata.deletionTimestamp];
