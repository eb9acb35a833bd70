/**
 * Decides on which nodes a DaemonSet has Pods, and makes a Pod for a node. The functions are pure.
 * Source: NodeShouldRunDaemonPod of pkg/controller/daemon/daemon_controller.go, and pkg/controller/daemon/util of v1.33 (behavior).
 */
import type { DaemonSet, Node, NodeSelectorRequirement, Pod, PodSpec, Toleration } from '../../api/generated/types.ts';
import { DAEMON_SETS } from '../../api/resources.ts';
import { matchesNodeSelection, untoleratedTaint } from '../../scheduling/requirements.ts';
import type { OwnerKind } from '../ownership/owner.ts';
import { podFromTemplate } from '../ownership/pods-of-owner.ts';

export const DAEMON_SET: OwnerKind = { apiVersion: 'apps/v1', kind: 'DaemonSet', resource: DAEMON_SETS };

const NAME_FIELD = 'metadata.name';

const tolerated = (condition: string, effect: string): Toleration => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect,
});

/** The tolerations of all Pods of DaemonSets. Source: "Taints and tolerations" in "DaemonSet" of the documentation. */
const TOLERATIONS: readonly Toleration[] = [
  tolerated('not-ready', 'NoExecute'),
  tolerated('unreachable', 'NoExecute'),
  tolerated('disk-pressure', 'NoSchedule'),
  tolerated('memory-pressure', 'NoSchedule'),
  tolerated('pid-pressure', 'NoSchedule'),
  tolerated('unschedulable', 'NoSchedule'),
];
const HOST_NETWORK_TOLERATION = tolerated('network-unavailable', 'NoSchedule');

/** The tolerations of all DaemonSets replace tolerations of the template that differ only in tolerationSeconds. */
function tolerationsOf({ tolerations = [], hostNetwork }: PodSpec): Toleration[] {
  const added = hostNetwork === true ? [...TOLERATIONS, HOST_NETWORK_TOLERATION] : TOLERATIONS;
  const isReplaced = (toleration: Toleration): boolean =>
    added.some(
      ({ key, effect, operator }) =>
        toleration.key === key &&
        toleration.effect === effect &&
        toleration.operator === operator &&
        (toleration.value ?? '') === '',
    );
  return [...tolerations.filter((toleration) => !isReplaced(toleration)), ...added];
}

/**
 * Returns a new Pod for the node. Its required node affinity names the node, in place of the template's rules, so that the scheduler binds
 * the Pod to this node.
 */
export function podFor(daemonSet: DaemonSet, nodeName: string): Pod {
  const pod = podFromTemplate(daemonSet.spec?.template, daemonSet, DAEMON_SET);
  const spec = pod.spec ?? { containers: [] };
  const matchFields: NodeSelectorRequirement[] = [{ key: NAME_FIELD, operator: 'In', values: [nodeName] }];
  spec.affinity = {
    ...spec.affinity,
    nodeAffinity: {
      ...spec.affinity?.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] },
    },
  };
  spec.tolerations = tolerationsOf(spec);
  return { ...pod, spec };
}

/** Returns the name of the node for which the Pod was created, even if the Pod is not bound yet; undefined if there is none. */
export function nodeOf({ spec }: Pod): string | undefined {
  if (spec?.nodeName) return spec.nodeName;
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const fields = (required?.nodeSelectorTerms ?? []).flatMap(({ matchFields = [] }) => matchFields);
  return fields.find(({ key, operator, values }) => key === NAME_FIELD && operator === 'In' && values?.length === 1)
    ?.values?.[0];
}

export interface Placement {
  /** Whether the node gets a Pod. */
  shouldRun: boolean;
  /** Whether a Pod that already runs on the node stays. */
  shouldContinue: boolean;
}

/** Returns a function that decides about a node. Work that does not depend on the node is done once per DaemonSet. */
export function placements(daemonSet: DaemonSet): (node: Node) => Placement {
  const spec = daemonSet.spec?.template?.spec ?? { containers: [] };
  const pod = { metadata: daemonSet.metadata, spec: { ...spec, tolerations: tolerationsOf(spec) } } as Pod;
  return (node) => {
    const { name } = node.metadata;
    if ((spec.nodeName && spec.nodeName !== name) || !matchesNodeSelection(pod, node))
      return { shouldRun: false, shouldContinue: false };
    const taints = node.spec?.taints ?? [];
    return {
      shouldRun: untoleratedTaint(pod, taints) === undefined,
      shouldContinue: untoleratedTaint(pod, taints, ['NoExecute']) === undefined,
    };
  };
}
