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

/** Reports the Deployments that must be reconciled. The callbacks get the key of a Deployment: its namespace, `/` and its name. */
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
  /** With the strategy Recreate, a Deployment waits until the last Pod of its old ReplicaSets has ended. */
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
