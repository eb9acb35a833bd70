/** Follows Deployments, their ReplicaSets and Pods, and reports the keys of the Deployments that must be reconciled. */
import type { Deployment, Pod, ReplicaSet } from '../../api/generated/types.ts';
import { DEPLOYMENTS, PODS, REPLICA_SETS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import type { ControllerOptions } from '../controller.ts';
import { dependentHandlers, keyOf } from '../ownership/dependent-handlers.ts';
import { controllerOf } from '../ownership/owner.ts';

export interface Followed {
  deployments: Informer<Deployment>;
  replicaSets: Informer<ReplicaSet>;
  pods: Informer<Pod>;
}

/** Follows the objects. `changed` and `deleted` are called with the key of a Deployment: its namespace, `/` and its name. */
export function followDeployments(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  { changed, deleted }: { changed(key: string): void; deleted(key: string): void },
): Followed {
  const deployments = informers.follow<Deployment>(
    DEPLOYMENTS,
    { signal },
    {
      added: (deployment) => changed(keyOf(deployment)),
      updated: (deployment) => changed(keyOf(deployment)),
      deleted: (deployment) => deleted(keyOf(deployment)),
    },
  );
  const selectorOf = ({ spec }: Deployment) => spec?.selector;
  const handlers = dependentHandlers({ kind: 'Deployment', owners: deployments, selectorOf, changed });
  const replicaSets = informers.follow<ReplicaSet>(REPLICA_SETS, { signal }, handlers);
  /** Queues the Deployment of the Pod if its strategy is Recreate, which waits for the last Pod of the old ReplicaSets to end. */
  const podEnded = (pod: Pod): void => {
    const controller = controllerOf(pod);
    if (controller?.kind !== 'ReplicaSet') return;
    const set = replicaSets.get(pod.metadata.namespace, controller.name);
    if (set === undefined) return;
    const deployment = deployments.get(set.metadata.namespace, controllerOf(set)?.name ?? '');
    if (deployment?.spec?.strategy?.type === 'Recreate') changed(keyOf(deployment));
  };
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      updated(pod, old) {
        if (pod.status?.phase !== old.status?.phase) podEnded(pod);
      },
      deleted: podEnded,
    },
  );
  return { deployments, replicaSets, pods };
}
