/**
 * Whether a Pod can run on a node, and if not, why: the first filter that refuses says so.
 * Source: the filter plugins of v1.33's default scheduler profile, in their order (behaviour and wording).
 */
import { hasEnded } from '../api/core/v1/pod/status/phase.ts';
import type { ContainerPort, Node, Pod } from '../api/generated/types.ts';
import { addQuantities, compareQuantities, quantityValue } from '../machinery/quantity.ts';
import { allocatableOf, requestedBy, wantedBy } from './node-resources.ts';
import { stateKeys, UNSCHEDULABLE } from './node-taints.ts';
import { matchesNodeSelection, tolerates, untoleratedTaint } from './requirements.ts';

export type Feasibility = { fits: true } | { fits: false; reasons: string[] };

type Filter = (pod: Pod, node: Node, podsOnNode: readonly Pod[]) => string[];

/** `podsOnNode`: all Pods that are bound to the node; those that have ended do not count. */
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

/** What the node's state calls for counts before the taint stands there: a node that shuts down gets no Pod any more. */
const taints: Filter = (pod, node) => {
  const ofState = stateKeys(node).map((key) => ({ key, effect: 'NoSchedule' }));
  const taint = untoleratedTaint(pod, [...(node.spec?.taints ?? []), ...ofState]);
  return taint === undefined ? [] : [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`];
};

const nodeSelection: Filter = (pod, node) =>
  matchesNodeSelection(pod, node) ? [] : ["node(s) didn't match Pod's node affinity/selector"];

const hostPorts: Filter = (pod, _node, podsOnNode) =>
  hostPortsTaken(pod, podsOnNode) ? ["node(s) didn't have free ports for the requested pod ports"] : [];

/** Whether one of the Pod's ports of the node is that of another, which has not ended. */
export const hostPortsTaken = (pod: Pod, others: readonly Pod[]): boolean =>
  others.filter((other) => !hasEnded(other)).some(hostPortClash(pod));

/** Returns a function that says whether another Pod has a host port that this one wants. It may be called for many Pods. */
export function hostPortClash(pod: Pod): (other: Pod) => boolean {
  const wanted = new Set(hostPortsOf(pod).flatMap((port) => [portAt(port, addressOf(port)), portAt(port)]));
  if (wanted.size === 0) return () => false;
  const isWanted = (port: ContainerPort): boolean =>
    addressOf(port) === EVERY_ADDRESS
      ? wanted.has(portAt(port))
      : wanted.has(portAt(port, addressOf(port))) || wanted.has(portAt(port, EVERY_ADDRESS));
  return (other) => hostPortsOf(other).some(isWanted);
}

/** The node's ports must be free for defer containers as well, whenever the Pod ends: nobody could move it then. */
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
/** Without an address: the port at any address. */
const portAt = ({ protocol, hostPort }: ContainerPort, address?: string): string =>
  [protocol || 'TCP', hostPort, ...(address === undefined ? [] : [address])].join('/');

/** A Pod may ask for a hundred thousand resources that the node does not have: so many are named. */
const MAX_REASONS = 100;

/** Requests that fit beside those of the Pods already there. */
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
