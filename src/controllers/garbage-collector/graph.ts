/**
 * Maintains the graph of owners and dependents, from the metadata of all objects that the garbage collector follows. The graph only
 * determines which objects to examine after a change. It may lag behind the API server, so writes also depend on reads from the API.
 *
 * Invariant: an object is a dependent of each UID in its ownerReferences, whether or not an object with this UID is known.
 * Source: upstream's GraphBuilder of v1.33 (behavior), except that owners that are not known have no (virtual) nodes.
 */
import { type KubeObject, type OwnerReference, uidOf } from '../../machinery/meta.ts';

/** `orphaning` and `deletingDependents`: the object is being deleted and has the finalizer ORPHAN or FOREGROUND. */
export type DeletionState = 'living' | 'beingDeleted' | 'orphaning' | 'deletingDependents';

/** The part of an object's metadata that matters to the garbage collector. */
export interface GraphNode {
  readonly uid: string;
  readonly apiVersion: string;
  readonly kind: string;
  /** Undefined for objects of cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly owners: readonly OwnerReference[];
  readonly state: DeletionState;
}

export interface Consequences {
  /** UIDs of the objects to examine. */
  examine: string[];
  /** References to an owner that is known to be in another namespace. */
  foreign: { dependent: GraphNode; owner: OwnerReference }[];
}

export const ORPHAN = 'orphan';
export const FOREGROUND = 'foregroundDeletion';

export function deletionState({ metadata }: KubeObject): DeletionState {
  if (metadata.deletionTimestamp === undefined) return 'living';
  if (metadata.finalizers?.includes(FOREGROUND)) return 'deletingDependents';
  return metadata.finalizers?.includes(ORPHAN) ? 'orphaning' : 'beingDeleted';
}

const NONE: readonly never[] = [];
const NOTHING: Consequences = { examine: [], foreign: [] };

/** Compares the fields that the garbage collector uses, in order. */
const areSame = (a: readonly OwnerReference[], b: readonly OwnerReference[]): boolean =>
  a.length === b.length &&
  a.every((one, index) => {
    const other = b[index] as OwnerReference;
    return (
      one.uid === other.uid &&
      one.blockOwnerDeletion === other.blockOwnerDeletion &&
      one.name === other.name &&
      one.kind === other.kind &&
      one.apiVersion === other.apiVersion
    );
  });

/** Whether the update changes nothing that matters to the garbage collector. */
export const isIrrelevant = (object: KubeObject, old: KubeObject): boolean =>
  deletionState(object) === deletionState(old) &&
  areSame(object.metadata.ownerReferences ?? NONE, old.metadata.ownerReferences ?? NONE);

export const blocks = ({ owners }: Pick<GraphNode, 'owners'>, ownerUid: string): boolean =>
  owners.some(({ uid, blockOwnerDeletion }) => uid === ownerUid && blockOwnerDeletion === true);

export class DependencyGraph {
  readonly #nodes = new Map<string, GraphNode>();
  /** By the UID of the owner, which need not be in the graph. */
  readonly #dependents = new Map<string, Set<GraphNode>>();

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid);
  }

  dependentsOf(uid: string): GraphNode[] {
    return [...(this.#dependents.get(uid) ?? NONE)];
  }

  put(object: KubeObject): Consequences {
    const { name, namespace, ownerReferences = NONE } = object.metadata;
    const uid = uidOf(object);
    const { apiVersion, kind } = object;
    const state = deletionState(object);
    const node: GraphNode = { uid, apiVersion, kind, namespace, name, owners: ownerReferences, state };
    const old = this.#nodes.get(uid);
    this.#nodes.set(uid, node);
    this.#unlink(old);
    this.#link(node);
    const result: Consequences = { examine: [], foreign: [] };
    this.#addOwners(node, old, result);
    if (old === undefined) this.#addMismatched(node, result);
    else this.#addUnblocked(node, old, result);
    if (state !== old?.state) this.#addWaiting(node, result);
    return result;
  }

  remove(uid: string): Consequences {
    const node = this.#nodes.get(uid);
    if (node === undefined) return NOTHING;
    this.#nodes.delete(uid);
    this.#unlink(node);
    const waiting = node.owners.filter((owner) => this.#isDeletingDependents(owner.uid));
    return {
      examine: [...this.dependentsOf(uid).map((dependent) => dependent.uid), ...waiting.map((owner) => owner.uid)],
      foreign: [],
    };
  }

  /** Removes the objects of a kind that can no longer be read. Does not examine their dependents, because the objects may still exist. */
  removeKind(apiVersion: string, kind: string): void {
    for (const node of [...this.#nodes.values()])
      if (node.kind === kind && node.apiVersion === apiVersion) {
        this.#nodes.delete(node.uid);
        this.#unlink(node);
      }
  }

  /**
   * Returns the consequences of all objects. Must be called after new kinds have been listed, because their objects were added in any
   * order.
   */
  all(): Consequences {
    const result: Consequences = { examine: [], foreign: [] };
    for (const node of this.#nodes.values()) {
      this.#addOwners(node, undefined, result);
      this.#addWaiting(node, result);
    }
    return result;
  }

  /** Whether the owner is known to exist and does not wait for the deletion of its dependents. */
  isSolid(dependent: Pick<GraphNode, 'namespace'>, owner: OwnerReference): boolean {
    const node = this.#nodes.get(owner.uid);
    return node !== undefined && node.state !== 'deletingDependents' && isNamedBy(owner, dependent, node);
  }

  /**
   * Whether the object waits for its own deletion through a chain of dependents. Each object in the chain waits for its dependents and
   * blocks the deletion of its owner.
   */
  isInCycle(uid: string): boolean {
    const visited = new Set<string>();
    const pending = [uid];
    for (let at = pending.pop(); at !== undefined; at = pending.pop())
      for (const dependent of this.#dependents.get(at) ?? NONE) {
        if (dependent.state !== 'deletingDependents' || !blocks(dependent, at)) continue;
        if (dependent.uid === uid) return true;
        if (!visited.has(dependent.uid)) pending.push(dependent.uid);
        visited.add(dependent.uid);
      }
    return false;
  }

  #link(node: GraphNode): void {
    for (const { uid } of node.owners) {
      const dependents = this.#dependents.get(uid);
      if (dependents === undefined) this.#dependents.set(uid, new Set([node]));
      else dependents.add(node);
    }
  }

  #unlink(node: GraphNode | undefined): void {
    for (const { uid } of node?.owners ?? NONE) {
      const dependents = this.#dependents.get(uid);
      dependents?.delete(node as GraphNode);
      if (dependents?.size === 0) this.#dependents.delete(uid);
    }
  }

  #isDeletingDependents(uid: string): boolean {
    return this.#nodes.get(uid)?.state === 'deletingDependents';
  }

  /**
   * Adds the object to `examine` if a new reference may be to an absent or waiting owner. Adds new references to other namespaces to
   * `foreign`.
   */
  #addOwners(node: GraphNode, old: GraphNode | undefined, { examine, foreign }: Consequences): void {
    const added = old === undefined ? node.owners : node.owners.filter((owner) => !old.owners.includes(owner));
    for (const owner of added) {
      const known = old?.owners.find(({ uid }) => uid === owner.uid);
      if (known !== undefined && areSame([known], [owner])) continue;
      if (!this.isSolid(node, owner)) examine.push(node.uid);
      const ownerNode = this.#nodes.get(owner.uid);
      if (ownerNode !== undefined && isForeign(node, ownerNode)) foreign.push({ dependent: node, owner });
    }
  }

  /**
   * Adds to `examine` the dependents that refer to the UID of the new object with another name, kind, apiVersion or namespace. Adds their
   * references from other namespaces to `foreign`.
   */
  #addMismatched(node: GraphNode, { examine, foreign }: Consequences): void {
    for (const dependent of this.#dependents.get(node.uid) ?? NONE) {
      const owner = dependent.owners.find(({ uid }) => uid === node.uid) as OwnerReference;
      if (isNamedBy(owner, dependent, node)) continue;
      examine.push(dependent.uid);
      if (isForeign(dependent, node)) foreign.push({ dependent, owner });
    }
  }

  #addUnblocked(node: GraphNode, old: GraphNode, { examine }: Consequences): void {
    for (const { uid } of old.owners)
      if (blocks(old, uid) && !blocks(node, uid) && this.#isDeletingDependents(uid)) examine.push(uid);
  }

  /** Adds the object to `examine` if it waits for the garbage collector, and its dependents if it waits for their deletion. */
  #addWaiting(node: GraphNode, { examine }: Consequences): void {
    if (node.state === 'orphaning' || node.state === 'deletingDependents') examine.push(node.uid);
    if (node.state !== 'deletingDependents') return;
    for (const dependent of this.#dependents.get(node.uid) ?? NONE) examine.push(dependent.uid);
  }
}

const isForeign = (dependent: Pick<GraphNode, 'namespace'>, owner: GraphNode): boolean =>
  owner.namespace !== undefined && owner.namespace !== dependent.namespace;

const isNamedBy = (reference: OwnerReference, dependent: Pick<GraphNode, 'namespace'>, owner: GraphNode): boolean =>
  reference.name === owner.name &&
  reference.kind === owner.kind &&
  reference.apiVersion === owner.apiVersion &&
  !isForeign(dependent, owner);
