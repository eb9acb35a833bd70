/**
 * Checks whether a Pod can run on a node. If it cannot, the result contains the reasons of the first filter that rejects the node.
 * Source: the filter plugins of v1.33's default scheduler profile, in their order (behavior and wording).
 */
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { ContainerPort, Node, Pod } from '../api/generated/types.ts';
import { addQuantities, compareQuantities, quantityValue } from '../machinery/quantity.ts';
import { allocatableOf, requestedBy, wantedBy } from './node-resources.ts';
import { stateKeys, UNSCHEDULABLE } from './node-taints.ts';
import { matchesNodeSelection, tolerates, untoleratedTaint } from './requirements.ts';

export type Feasibility = { fits: true } | { fits: false; reasons: string[] };

type Filter = (pod: Pod, node: Node, podsOnNode: readonly Pod[]) => string[];

/** Whether the Pod fits on the node. `podsOnNode`: all other Pods bound to the node; terminated Pods are ignored. */
export function feasible(pod: Pod, node: Node, podsOnNode: readonly Pod[]): Feasibility {
  const running = podsOnNode.filter((other) => !hasEnded(other));
  for (const filter of filters) {
    const reasons = filter(pod, node, running);
    if (reasons.length > 0) return { fits: false, reasons };
  }
  return { fits: true };
}

const unschedulableTaint = { key: UNSCHEDULABLE, effect: 'NoSchedule' };

const schedulable: Filter = (pod, node) =>
  node.spec?.unschedulable !== true ||
  (pod.spec?.tolerations ?? []).some((toleration) => tolerates(toleration, unschedulableTaint))
    ? []
    : ['node(s) were unschedulable'];

const nodeName: Filter = (pod, node) =>
  !pod.spec?.nodeName || pod.spec.nodeName === node.metadata.name
    ? []
    : ["node(s) didn't match the requested node name"];

/**
 * Also checks taints that the node's state requires but that a controller has not set yet, so that no Pod is bound to a node that has
 * just begun to shut down, for example.
 */
const taints: Filter = (pod, node) => {
  const ofState = stateKeys(node).map((key) => ({ key, effect: 'NoSchedule' }));
  const taint = untoleratedTaint(pod, [...(node.spec?.taints ?? []), ...ofState]);
  return taint === undefined ? [] : [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`];
};

const nodeSelection: Filter = (pod, node) =>
  matchesNodeSelection(pod, node) ? [] : ["node(s) didn't match Pod's node affinity/selector"];

const hostPorts: Filter = (pod, _node, podsOnNode) =>
  hostPortsTaken(pod, podsOnNode) ? ["node(s) didn't have free ports for the requested pod ports"] : [];

/** Whether a host port of the Pod is used by another Pod that has not terminated. */
export const hostPortsTaken = (pod: Pod, others: readonly Pod[]): boolean =>
  others.filter((other) => !hasEnded(other)).some(hostPortClash(pod));

/** Returns a predicate: whether another Pod uses a host port that `pod` requests. The ports of `pod` are indexed only once. */
export function hostPortClash(pod: Pod): (other: Pod) => boolean {
  const wanted = new Set(hostPortsOf(pod).flatMap((port) => [portAt(port, addressOf(port)), portAt(port)]));
  if (wanted.size === 0) return () => false;
  const isWanted = (port: ContainerPort): boolean =>
    addressOf(port) === EVERY_ADDRESS
      ? wanted.has(portAt(port))
      : wanted.has(portAt(port, addressOf(port))) || wanted.has(portAt(port, EVERY_ADDRESS));
  return (other) => hostPortsOf(other).some(isWanted);
}

/**
 * The ports of sidecars, app containers and defer containers that have a host port. Like upstream, ignores other init containers. The
 * ports of defer containers are reserved from the start, because a terminating Pod cannot be moved to another node.
 */
const hostPortsOf = (pod: Pod): ContainerPort[] =>
  [
    ...(pod.spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always'),
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.deferContainers ?? []),
  ]
    .flatMap((container) => container.ports ?? [])
    .filter(({ hostPort }) => (hostPort ?? 0) > 0);

const EVERY_ADDRESS = '0.0.0.0';
const addressOf = ({ hostIP }: ContainerPort): string => hostIP || EVERY_ADDRESS;
/** A key for the protocol, the host port and the address. A key without an address means the port at any address. */
const portAt = ({ protocol, hostPort }: ContainerPort, address?: string): string =>
  [protocol || 'TCP', hostPort, ...(address === undefined ? [] : [address])].join('/');

/** The maximum number of reasons about resources to report. A Pod may request a hundred thousand resources that the node does not have. */
const MAX_REASONS = 100;

/** Checks that the Pod's requests fit on the node in addition to those of `podsOnNode`, and that the node may run one more Pod. */
const resources: Filter = (pod, node, podsOnNode) => {
  const reasons: string[] = [];
  const maxPods = allocatableOf(node, 'pods');
  if (maxPods !== undefined && BigInt(podsOnNode.length) + 1n > quantityValue(maxPods)) reasons.push('Too many pods');
  for (const [name, request] of wantedBy(pod)) {
    const allocatable = allocatableOf(node, name);
    const fits =
      allocatable !== undefined &&
      compareQuantities(addQuantities(requestedBy(podsOnNode, name), request), allocatable) <= 0;
    if (!fits) reasons.push(`Insufficient ${name}`);
    if (reasons.length === MAX_REASONS) break;
  }
  return reasons;
};

const filters: readonly Filter[] = [schedulable, nodeName, taints, nodeSelection, hostPorts, resources];
