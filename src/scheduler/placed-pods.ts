/**
 * Tracks the Pods of each node as the scheduler must count them: bound Pods, assumed Pods, whose binding is in progress, and nominated
 * Pods.
 *
 * Invariant: a Pod counts on at most one node. It is assumed until the informer reports its binding or deletion, or the binding fails.
 */
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../api/generated/types.ts';
import { NodePods, type PodsOnNode } from '../scheduling/node-pods.ts';
import { priorityOf } from '../scheduling/preemption.ts';

const uidOf = ({ metadata }: Pod): string => metadata.uid as string;

export class PlacedPods {
  readonly #waiting: (pod: Pod) => Pod | undefined;
  readonly #nodes = new Map<string, NodePods>();
  readonly #places = new Map<string, string>();
  readonly #assumed = new Set<string>();
  readonly #nominated = new Map<string, { pod: Pod; node: string }>();
  readonly #none = new NodePods();

  /** `waiting`: returns the current version of a Pod; undefined if the Pod no longer needs a node. */
  constructor(waiting: (pod: Pod) => Pod | undefined) {
    this.#waiting = waiting;
  }

  /** Records a Pod that the informer reports. */
  observe(pod: Pod): void {
    const node = pod.spec?.nodeName;
    if (node) this.#assumed.delete(uidOf(pod));
    if (node && !hasEnded(pod)) this.#place(pod, node);
    else if (!this.isAssumed(pod)) this.#unplace(pod);
  }

  /** Removes a Pod whose deletion the informer reports. */
  remove(pod: Pod): void {
    this.#assumed.delete(uidOf(pod));
    this.#nominated.delete(uidOf(pod));
    this.#unplace(pod);
  }

  /** Counts the Pod as bound to the node. */
  assume(pod: Pod, node: string): void {
    this.#assumed.add(uidOf(pod));
    this.#place(pod, node);
  }

  isAssumed(pod: Pod): boolean {
    return this.#assumed.has(uidOf(pod));
  }

  /** Removes the Pod from the node for which it was assumed, unless the informer has reported a binding meanwhile. */
  bindingFailed(pod: Pod): void {
    if (this.#assumed.delete(uidOf(pod))) this.#unplace(pod);
  }

  /** Sets the node on which the Pod will fit after other Pods, such as preempted ones, have terminated; undefined if there is none. */
  nominate(pod: Pod, node: string | undefined): void {
    if (node === undefined) this.#nominated.delete(uidOf(pod));
    else this.#nominated.set(uidOf(pod), { pod, node });
  }

  isNominated(pod: Pod): boolean {
    return this.#nominated.has(uidOf(pod));
  }

  /**
   * Returns a function that returns the Pods of a node whose resources are not available to `pod`: bound and assumed Pods, and nominated
   * Pods with at least the same priority.
   */
  before(pod: Pod): (node: string) => PodsOnNode {
    const withNominees = new Map(
      [...this.#nominatedBefore(pod)].map(([node, nominees]) => [
        node,
        new NodePods(this.#nodes.get(node)?.pods, nominees),
      ]),
    );
    return (node) => withNominees.get(node) ?? this.#nodes.get(node) ?? this.#none;
  }

  /** By node: the other waiting Pods that are nominated for it and have at least the priority of `pod`. */
  #nominatedBefore(pod: Pod): Map<string, Pod[]> {
    const byNode = new Map<string, Pod[]>();
    for (const { pod: other, node } of this.#nominated.values()) {
      if (uidOf(other) === uidOf(pod) || this.isAssumed(other)) continue;
      const current = this.#waiting(other);
      if (current === undefined || priorityOf(current) < priorityOf(pod)) continue;
      byNode.set(node, [...(byNode.get(node) ?? []), current]);
    }
    return byNode;
  }

  #place(pod: Pod, node: string): void {
    if (this.#places.get(uidOf(pod)) !== node) this.#unplace(pod);
    this.#places.set(uidOf(pod), node);
    const onNode = this.#nodes.get(node) ?? new NodePods();
    this.#nodes.set(node, onNode);
    onNode.set(pod);
  }

  #unplace(pod: Pod): void {
    const place = this.#places.get(uidOf(pod));
    if (place === undefined) return;
    this.#places.delete(uidOf(pod));
    const onNode = this.#nodes.get(place);
    onNode?.delete(uidOf(pod));
    if (onNode?.count === 0) this.#nodes.delete(place);
  }
}
