/**
 * The generation of an object: the number of states that clients have asked for. It is 1 for a new object, and each update that changes
 * the asked state increments it, so that a controller can report in its status which state it has seen (observedGeneration).
 * Source: PrepareForCreate and PrepareForUpdate of the strategies in pkg/registry of v1.33 (behavior).
 */
import type { KubeObject } from '../machinery/meta.ts';
import { sameValue } from './core/v1/pod/compare.ts';

/** Sets the generation of a new object. */
export function startGeneration({ metadata }: KubeObject): void {
  metadata.generation = 1;
}

/** Sets the generation of an object that replaces `old`. `asked`: the parts of both objects that clients ask for, such as their specs. */
export function countGeneration(
  object: KubeObject,
  old: KubeObject,
  asked: readonly [now: unknown, old: unknown],
): void {
  const generation = old.metadata.generation ?? 0;
  object.metadata.generation = sameValue(...asked) ? generation : generation + 1;
}
