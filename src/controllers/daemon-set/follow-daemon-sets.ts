import { isDeepStrictEqual } from 'node:util';
import type { ControllerRevision, DaemonSet, Node, Pod } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import type { ControllerOptions } from '../controller.ts';
import { dependentHandlers, keyOf } from '../ownership/dependent-handlers.ts';

export interface Followed {
  daemonSets: Informer<DaemonSet>;
  nodes: Informer<Node>;
  pods: Informer<Pod>;
  revisions: Informer<ControllerRevision>;
}

/**
 * Follows DaemonSets, their Pods and ControllerRevisions, and Nodes. Calls `changed` with the key of each DaemonSet to reconcile: its
 * namespace, `/` and its name.
 */
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
  const selectorOf = ({ spec }: DaemonSet) => spec?.selector;
  const handlers = dependentHandlers({ kind: 'DaemonSet', owners: daemonSets, selectorOf, changed });
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

/** The fields of a node that decide whether a DaemonSet has a Pod on it. */
const placementFields = ({ metadata, spec }: Node) => [metadata.labels, spec?.taints, spec?.unschedulable];
