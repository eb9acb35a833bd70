/**
 * Determines the finalizers with which a deleted object waits for the garbage collector: `orphan` until its dependents no longer refer to
 * it, `foregroundDeletion` until its dependents have been deleted.
 * Source: deletionFinalizersForGarbageCollection, shouldOrphanDependents and shouldDeleteDependents of v1.33's generic registry (behavior).
 */
import type { KindDefinition } from '../../api/kind.ts';
import type { DeleteOptions } from '../../ports/backend.ts';

const FINALIZERS = { Orphan: 'orphan', Foreground: 'foregroundDeletion' } as const;
const OF_DEPENDENTS: ReadonlySet<string> = new Set(Object.values(FINALIZERS));

/**
 * Returns the finalizers of an object after a delete request. Finalizers other than `orphan` and `foregroundDeletion` always stay. Without
 * a propagation policy, these two also stay; if the object has neither, the default of the kind decides. A kind that does not support
 * propagation gets neither.
 */
export function finalizersAfterDelete(
  { propagation }: Pick<KindDefinition, 'propagation'>,
  finalizers: readonly string[],
  { propagationPolicy }: Pick<DeleteOptions, 'propagationPolicy'>,
): string[] {
  const others = finalizers.filter((name) => !OF_DEPENDENTS.has(name));
  if (propagation === 'unsupported') return others;
  if (propagationPolicy === undefined) {
    const present = finalizers.filter((name) => OF_DEPENDENTS.has(name));
    if (present.length > 0) return [...others, ...present];
    return propagation?.byDefault === undefined ? others : [...others, FINALIZERS[propagation.byDefault]];
  }
  return propagationPolicy === 'Orphan' || propagationPolicy === 'Foreground'
    ? [...others, FINALIZERS[propagationPolicy]]
    : others;
}

/**
 * Returns the propagation policy; undefined if the options contain none. The values may have wrong types. `orphanDependents` is the older
 * form of the policy, and takes precedence.
 */
export function propagationPolicyOf(options: {
  propagationPolicy?: unknown;
  orphanDependents?: unknown;
}): string | undefined {
  const { propagationPolicy, orphanDependents } = options;
  if (typeof orphanDependents === 'boolean') return orphanDependents ? 'Orphan' : 'Background';
  return typeof propagationPolicy === 'string' ? propagationPolicy : undefined;
}
