/**
 * Decides what the garbage collector does with an object.
 * Source: attemptToDeleteItem, processDeletingDependentsItem and attemptToOrphanWorker of v1.33's garbage collector (behavior), except that
 * upstream does not search for cycles: it breaks a cycle only if its objects are deleted one after the other, and sometimes unblocks
 * objects without a cycle.
 */
import type { ObjectMeta } from '../../machinery/meta.ts';
import { blocks, type DeletionState, FOREGROUND, type GraphNode, ORPHAN } from './graph.ts';

/**
 * The state of an owner in the API. `solid`: the owner exists. `waiting`: it exists and waits for the deletion of its dependents. `absent`:
 * it does not exist. `unknown`: its kind is not served, or is namespaced while the object is not.
 */
export type OwnerState = 'solid' | 'waiting' | 'absent' | 'unknown';

export type Dependent = Pick<GraphNode, 'uid' | 'owners' | 'state'>;

export interface Examined {
  metadata: Pick<ObjectMeta, 'uid' | 'finalizers'>;
  state: DeletionState;
  owners: readonly { uid: string; state: OwnerState }[];
  /** The known objects that refer to the object. */
  dependents: readonly Dependent[];
  /** Whether the object waits for the deletion of its dependents, and one of them waits, directly or indirectly, for the object. */
  isInCycle: boolean;
}

export type Decision =
  | { action: 'keep' }
  | { action: 'removeOwners'; uids: string[] }
  | { action: 'delete'; propagationPolicy: 'Background' | 'Foreground' | 'Orphan' }
  /** The object stops blocking the deletion of its owners, because they wait for each other. */
  | { action: 'unblock' }
  /** Remove the references of the dependents, then the finalizer `orphan`. */
  | { action: 'orphan'; dependents: Dependent[] }
  | { action: 'removeFinalizer'; finalizer: string }
  /** The object waits for these dependents, which may not have been deleted yet. */
  | { action: 'await'; uids: string[] };

const KEEP: Decision = { action: 'keep' };

export function decide(examined: Examined): Decision {
  if (examined.state === 'orphaning') return { action: 'orphan', dependents: [...examined.dependents] };
  if (examined.state === 'deletingDependents') return awaitDependents(examined);
  return examined.state === 'living' ? collect(examined) : KEEP;
}

function awaitDependents({ metadata: { uid = '' }, dependents, isInCycle }: Examined): Decision {
  const blocking = dependents.filter((dependent) => blocks(dependent, uid));
  if (blocking.length === 0) return { action: 'removeFinalizer', finalizer: FOREGROUND };
  if (isInCycle) return { action: 'unblock' };
  const idle = blocking.filter(({ state }) => state !== 'deletingDependents');
  return { action: 'await', uids: idle.map((dependent) => dependent.uid) };
}

function collect({ metadata: { finalizers = [] }, owners, dependents }: Examined): Decision {
  if (owners.length === 0 || owners.some(({ state }) => state === 'unknown')) return KEEP;
  const others = owners.filter(({ state }) => state !== 'solid');
  if (others.length === 0) return KEEP;
  // An object with a solid owner remains. A waiting owner could not be deleted while the object refers to it.
  if (others.length < owners.length) return { action: 'removeOwners', uids: others.map(({ uid }) => uid) };
  const isForeground = owners.some(({ state }) => state === 'waiting') && dependents.length > 0;
  return { action: 'delete', propagationPolicy: isForeground ? 'Foreground' : policyOf(finalizers) };
}

function policyOf(finalizers: readonly string[]): 'Background' | 'Foreground' | 'Orphan' {
  if (finalizers.includes(ORPHAN)) return 'Orphan';
  return finalizers.includes(FOREGROUND) ? 'Foreground' : 'Background';
}
