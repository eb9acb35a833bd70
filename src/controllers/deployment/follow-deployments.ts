/** Follows the objects on which Deployments depend, and reports the keys of the Deployments that must be reconciled. */
import type { Deployment, Pod, ReplicaSet } from '../../api/generated/types.ts';
import { DEPLOYMENTS, PODS, REPLICA_SETS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import { labelSelectorMatcher } from '../../machinery/labels.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { controllerOf } from '../ownership/owner.ts';

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;
const namespaceOf = ({ metadata }: KubeObject): readonly string[] => [metadata.namespace ?? ''];

export interface Followed {
  deployments: Informer<Deployment>;
  replicaSets: Informer<ReplicaSet>;
  pods: Informer<Pod>;
}

/** `changed` and `deleted` get the namespace of a Deployment, `/` and its name. */
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
  /** Queues the Deployment that controls the object; if the object has no controller, all Deployments whose selectors match. */
  const setChanged = (set: ReplicaSet): void => {
    const controller = controllerOf(set);
    if (controller?.kind === 'Deployment') changed(`${set.metadata.namespace}/${controller.name}`);
    if (controller !== undefined) return;
    for (const deployment of deployments.by(namespaceOf, set.metadata.namespace ?? ''))
      if (labelSelectorMatcher(deployment.spec?.selector)(set.metadata.labels)) changed(keyOf(deployment));
  };
  const replicaSets = informers.follow<ReplicaSet>(
    REPLICA_SETS,
    { signal },
    {
      added: setChanged,
      updated(set, old) {
        if (controllerOf(set)?.uid !== controllerOf(old)?.uid) setChanged(old);
        setChanged(set);
      },
      deleted: setChanged,
    },
  );
  /** The strategy Recreate waits for the last Pod of the old ReplicaSets. */
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
