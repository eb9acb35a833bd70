/** Follows the objects on which DaemonSets depend, and reports the keys of the DaemonSets that must be reconciled. */
import { isDeepStrictEqual } from 'node:util';
import type { ControllerRevision, DaemonSet, Node, Pod } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import { labelSelectorMatcher } from '../../machinery/labels.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { controllerOf } from '../ownership/owner.ts';

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;
const namespaceOf = ({ metadata }: KubeObject): readonly string[] => [metadata.namespace ?? ''];

export interface Followed {
  daemonSets: Informer<DaemonSet>;
  nodes: Informer<Node>;
  pods: Informer<Pod>;
  revisions: Informer<ControllerRevision>;
}

/** `changed` gets the namespace of a DaemonSet, `/` and its name. */
export function followDaemonSets(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  { changed, deleted }: { changed(key: string): void; deleted(daemonSet: DaemonSet): void },
): Followed {
  const daemonSets = informers.follow<DaemonSet>(
    DAEMON_SETS,
    { signal },
    {
      added: (daemonSet) => changed(keyOf(daemonSet)),
      updated: (daemonSet) => changed(keyOf(daemonSet)),
      deleted,
    },
  );
  /** Queues the DaemonSet that controls the object; if the object has no controller, all DaemonSets whose selectors match. */
  const dependentChanged = (object: KubeObject): void => {
    const { namespace, labels } = object.metadata;
    const controller = controllerOf(object);
    if (controller?.kind === 'DaemonSet') changed(`${namespace}/${controller.name}`);
    if (controller !== undefined) return;
    for (const daemonSet of daemonSets.by(namespaceOf, namespace ?? ''))
      if (labelSelectorMatcher(daemonSet.spec?.selector)(labels)) changed(keyOf(daemonSet));
  };
  const handlers = {
    added: dependentChanged,
    updated(object: KubeObject, old: KubeObject) {
      if (controllerOf(object)?.uid !== controllerOf(old)?.uid) dependentChanged(old);
      dependentChanged(object);
    },
    deleted: dependentChanged,
  };
  const allChanged = (): void => {
    for (const daemonSet of daemonSets.list()) changed(keyOf(daemonSet));
  };
  const nodes = informers.follow<Node>(
    NODES,
    { signal },
    {
      added: allChanged,
      updated(node, old) {
        if (!isDeepStrictEqual(placementFields(node), placementFields(old))) allChanged();
      },
      deleted: allChanged,
    },
  );
  const revisions = informers.follow<ControllerRevision>(CONTROLLER_REVISIONS, { signal }, handlers);
  return { daemonSets, nodes, pods: informers.follow<Pod>(PODS, { signal }, handlers), revisions };
}

/** The fields of a node that decide whether a Pod runs on it. */
const placementFields = ({ metadata, spec }: Node) => [metadata.labels, spec?.taints, spec?.unschedulable];
