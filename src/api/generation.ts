/**
 * The generation of an object increases with each update of the state that clients ask for, so that a controller can report in its status
 * which state it has seen (observedGeneration).
 * Source: PrepareForCreate and PrepareForUpdate of the strategies in pkg/registry of v1.33 (behavior).
 */
import type { KubeObject } from '../machinery/meta.ts';
import { sameValue } from './core/v1/pod/compare.ts';

export function startGeneration({ metadata }: KubeObject): void {
  metadata.generation = 1;
}

/** `asked`: the parts of both objects that clients ask for, such as their specs. */
export function countGeneration(
  object: KubeObject,
  old: KubeObject,
  asked: readonly [now: unknown, old: unknown],
): void {
  const generation = old.metadata.generation ?? 0;
  object.metadata.generation = sameValue(...asked) ? generation : generation + 1;
}
