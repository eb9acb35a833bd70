/**
 * The annotation with the cost of deleting a Pod: its ReplicaSet deletes Pods with lower costs first.
 * Source: GetDeletionCostFromPodAnnotations of pkg/apis/core/helper and ValidatePodSpecificAnnotations of pkg/apis/core/validation of v1.33
 * (rules and wording).
 */
import { type FieldError, invalid } from '../../../../machinery/field-error.ts';
import type { ObjectMeta } from '../../../../machinery/meta.ts';
import { annotationPath } from './compatibility/annotation-json.ts';

export const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

type Annotated = { metadata?: Pick<ObjectMeta, 'annotations'> };

/**
 * Returns 0 without the annotation; undefined if the text is not a 32-bit integer, or starts with `+` or with a zero that other digits
 * follow.
 */
export function deletionCost({ metadata }: Annotated): number | undefined {
  const text = metadata?.annotations?.[DELETION_COST];
  if (text === undefined) return 0;
  if (!/^(0|-\d+|[1-9]\d*)$/.test(text)) return undefined;
  const cost = Number(text);
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? cost : undefined;
}

/** `old`: the Pod or template that is replaced. It may keep an invalid cost. */
export function validateDeletionCost(object: Annotated, old?: Annotated): FieldError[] {
  if (deletionCost(object) !== undefined || (old !== undefined && deletionCost(old) === undefined)) return [];
  const text = object.metadata?.annotations?.[DELETION_COST];
  return [invalid(annotationPath(DELETION_COST), text, 'must be a 32bit integer')];
}
