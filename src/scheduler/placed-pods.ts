/**
 * Tracks the Pods of each node as the scheduler must count them: those that the informer shows on the node, those that the scheduler is
 * binding (assumed), and those with a nominated node.
 *
 * Invariant: a Pod counts on at most one node. It is assumed until the informer shows its binding or deletion, or the binding fails.
 */
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../api/generated/types.ts';
import { NodePods, type PodsOnNode } from '../scheduling/node-pods.ts';
import { priorityOf } from '../scheduling/preemption.ts';

const uidOf = ({ metadata }: Pod): string => metadata.uid as string;

export class PlacedPods {
  readonly #waiting: (pod: Pod) => Pod | undefined;
  readonly #nodes = new Map<string, NodePods>();
  /** The node on which a Pod counts, by the UID of the Pod. */
  readonly #places = new Map<string, string>();
  readonly #assumed = new Set<string>();
  readonly #nominated = new Map<string, { pod: Pod; node: string }>();
  readonly #none = new NodePods();

  /** `waiting`: returns the current state of a Pod; undefined if the Pod no longer needs a node. */
  constructor(waiting: (pod: Pod) => Pod | undefined) {
    this.#waiting = waiting;
  }

  /** Adopts the state of a Pod that the informer shows. */
  observe(pod: Pod): void {
    const node = pod.spec?.nodeName;
    if (node) this.#assumed.delete(uidOf(pod));
    if (node && !hasEnded(pod)) this.#place(pod, node);
    else if (!this.isAssumed(pod)) this.#unplace(pod);
  }

  /** Forgets a Pod that the informer shows as deleted. */
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

  /** Stops assuming the Pod. If the informer has shown its binding meanwhile, the Pod stays on its node. */
  bindingFailed(pod: Pod): void {
    if (this.#assumed.delete(uidOf(pod))) this.#unplace(pod);
  }

  /** Sets the node on which the Pod will fit once other Pods, such as preempted ones, have terminated; undefined: there is none. */
  nominate(pod: Pod, node: string | undefined): void {
    if (node === undefined) this.#nominated.delete(uidOf(pod));
    else this.#nominated.set(uidOf(pod), { pod, node });
  }

  isNominated(pod: Pod): boolean {
    return this.#nominated.has(uidOf(pod));
  }

  /**
   * Returns a function that returns, by the name of a node, the Pods whose resources are not available to `pod`: the bound and assumed
   * Pods, and the other waiting Pods that have at least the priority of `pod` and are nominated for the node.
   */
  before(pod: Pod): (node: string) => PodsOnNode {
    const nominated = this.#nominatedBefore(pod);
    return (node) => {
      const onNode = this.#nodes.get(node) ?? this.#none;
      const nominees = nominated.get(node);
      return nominees === undefined ? onNode : new NodePods([...onNode.pods, ...nominees]);
    };
  }

  /** Returns the other waiting Pods that have at least the priority of the Pod, by the node for which they are nominated. */
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
