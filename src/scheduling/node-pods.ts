/**
 * Keeps the Pods of one node, and the sums of their requests, host ports and claims. Adding or removing a Pod updates the sums, so that a
 * decision about another Pod does not examine all Pods.
 *
 * Invariants: no Pod counts twice, and a terminated Pod counts for nothing. The sums equal the sums of a new set with the same Pods.
 */
import { effectiveRequests } from '../api/core/v1/pod/resources.ts';
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../api/generated/types.ts';
import { type Quantity, zeroQuantity } from '../machinery/quantity.ts';
import { portKeysOf } from './host-ports.ts';
import { mayRepel } from './inter-pod-affinity.ts';
import { SCORED, type ScoredResource, scoredRequest } from './scores.ts';
import { claimNamesOf } from './volume-claims.ts';

export interface PodsOnNode {
  readonly pods: Iterable<Pod>;
  readonly count: number;
  /** Those of the Pods that are not bound yet, but nominated for the node. */
  readonly nominees: ReadonlySet<Pod>;
  /** The Pods with required anti-affinity. */
  readonly repelling: ReadonlySet<Pod>;
  /** Returns the sum of the effective requests. */
  requested(name: string): Quantity;
  /** Returns the sum of the requests that the score counts, in billionths of the unit. */
  scored(name: ScoredResource): bigint;
  /** Whether a Pod uses the host port. `key`: see portKeysOf() in host-ports.ts. */
  usesPort(key: string): boolean;
  usesClaim(namespace: string, name: string): boolean;
}

class Counts {
  readonly #counts = new Map<string, number>();

  add(key: string, times: 1 | -1): void {
    const count = (this.#counts.get(key) ?? 0) + times;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }

  has(key: string): boolean {
    return this.#counts.has(key);
  }
}

const claimKey = (namespace: string | undefined, name: string): string => `${namespace ?? ''}/${name}`;

export class NodePods implements PodsOnNode {
  /** By UID, or by the object itself if the Pod has no UID. */
  readonly #pods = new Map<string | Pod, Pod>();
  readonly #requested = new Map<string, bigint>();
  readonly #scored: Record<ScoredResource, bigint> = { cpu: 0n, memory: 0n };
  readonly #ports = new Counts();
  readonly #claims = new Counts();
  readonly #repelling = new Set<Pod>();

  readonly nominees: ReadonlySet<Pod>;

  /** Adds the nominees to the Pods. */
  constructor(pods: Iterable<Pod> = [], nominees: Iterable<Pod> = []) {
    this.nominees = new Set(nominees);
    for (const pod of [...pods, ...this.nominees]) this.set(pod);
  }

  get pods(): Iterable<Pod> {
    return this.#pods.values();
  }

  get repelling(): ReadonlySet<Pod> {
    return this.#repelling;
  }

  get count(): number {
    return this.#pods.size;
  }

  /** Adds or replaces the Pod. Removes a terminated Pod. The Pod must be immutable. */
  set(pod: Pod): void {
    const id = pod.metadata.uid ?? pod;
    this.delete(id);
    if (hasEnded(pod)) return;
    this.#pods.set(id, pod);
    this.#count(pod, 1);
  }

  /** `id`: the UID, or the Pod itself if it has no UID. */
  delete(id: string | Pod): void {
    const pod = this.#pods.get(id);
    if (pod === undefined) return;
    this.#pods.delete(id);
    this.#count(pod, -1);
  }

  requested(name: string): Quantity {
    const nano = this.#requested.get(name);
    return nano === undefined ? zeroQuantity : { ...zeroQuantity, nano };
  }

  scored(name: ScoredResource): bigint {
    return this.#scored[name];
  }

  usesPort(key: string): boolean {
    return this.#ports.has(key);
  }

  usesClaim(namespace: string, name: string): boolean {
    return this.#claims.has(claimKey(namespace, name));
  }

  #count(pod: Pod, times: 1 | -1): void {
    if (times === -1) this.#repelling.delete(pod);
    else if (mayRepel(pod)) this.#repelling.add(pod);
    const factor = BigInt(times);
    for (const [name, { nano }] of effectiveRequests(pod)) {
      const sum = (this.#requested.get(name) ?? 0n) + factor * nano;
      if (sum === 0n) this.#requested.delete(name);
      else this.#requested.set(name, sum);
    }
    for (const name of SCORED) this.#scored[name] += factor * scoredRequest(pod, name);
    for (const key of portKeysOf(pod)) this.#ports.add(key, times);
    for (const name of new Set(claimNamesOf(pod))) this.#claims.add(claimKey(pod.metadata.namespace, name), times);
  }
}

/** Returns a function that returns the Pods that are bound to a node. */
export function podsByNode(pods: Iterable<Pod>): (node: string) => PodsOnNode {
  const byNode = new Map<string, NodePods>();
  for (const pod of pods) {
    const name = pod.spec?.nodeName ?? '';
    const onNode = byNode.get(name) ?? new NodePods();
    byNode.set(name, onNode);
    onNode.set(pod);
  }
  const none = new NodePods();
  return (node) => byNode.get(node) ?? none;
}
