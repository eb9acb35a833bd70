/**
 * The validation that the kinds of access reviews have in common. Source: pkg/apis/authorization/validation of v1.33 (behavior and
 * wording).
 */
import { allErrors, type FieldError, invalid } from '../../../machinery/field-error.ts';
import type { ObjectMeta } from '../../../machinery/meta.ts';
import type { SelfSubjectAccessReviewSpec, SubjectAccessReviewSpec } from '../../generated/types.ts';

/** Only managedFields and the fields in `allowed` may be set in the metadata: reviews are not stored, so they have no name. */
export function emptyMetadata(
  metadata: ObjectMeta | undefined,
  text: string,
  allowed: readonly string[],
): FieldError[] {
  const isEmpty = Object.entries(metadata ?? {}).every(
    ([field, value]) => allowed.includes(field) || value === '' || value === undefined || field === 'managedFields',
  );
  return isEmpty ? [] : [invalid('metadata', metadata, text)];
}

export function validateQuestion(spec: SelfSubjectAccessReviewSpec | undefined): FieldError[] {
  const { resourceAttributes, nonResourceAttributes } = spec ?? {};
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined) {
    const text = 'cannot be specified in combination with resourceAttributes';
    return [invalid('spec.nonResourceAttributes', nonResourceAttributes, text)];
  }
  if (resourceAttributes !== undefined || nonResourceAttributes !== undefined) return [];
  const text = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [invalid('spec.resourceAttributes', null, text)];
}

export const validateQuestionAboutUser = (spec: SubjectAccessReviewSpec | undefined): FieldError[] =>
  allErrors(
    validateQuestion(spec),
    spec?.user || (spec?.groups ?? []).length > 0
      ? []
      : [invalid('spec.user', '', 'at least one of user or group must be specified')],
  );
