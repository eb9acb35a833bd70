/** Applies a patch of any type except server-side apply, which also needs the owners of the fields (see field-ownership). */
import type { JsonObject } from '../json-value.ts';
import { applyJsonPatch } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';
import { applyStrategicMergePatch, type StrategyLookup } from './strategic-merge-patch.ts';

export type PatchType =
  | 'application/json-patch+json'
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml';

/**
 * Does not modify `object`; the result may share parts with `object` and with the patch, `body`. Throws ApiError if the patch is invalid or
 * cannot be applied.
 */
export function applyPatch(
  type: Exclude<PatchType, 'application/apply-patch+yaml'>,
  object: object,
  body: unknown,
  strategyFor: StrategyLookup,
): JsonObject {
  const original = object as JsonObject;
  switch (type) {
    case 'application/json-patch+json':
      return applyJsonPatch(original, body);
    case 'application/merge-patch+json':
      return applyMergePatch(original, body);
    case 'application/strategic-merge-patch+json':
      return applyStrategicMergePatch(original, body, strategyFor);
  }
}
