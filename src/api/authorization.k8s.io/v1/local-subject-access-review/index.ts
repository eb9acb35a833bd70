/**
 * The LocalSubjectAccessReview: asks whether a user may send a request in the namespace of the review. Thus the right to create such
 * reviews can be limited to a namespace.
 * Source: pkg/registry/authorization/localsubjectaccessreview and pkg/apis/authorization of v1.33.
 */
import { allErrors, type FieldError, invalid } from '../../../../machinery/field-error.ts';
import { kind } from '../../../declaration.ts';
import type { LocalSubjectAccessReview } from '../../../generated/types.ts';
import { accessReview, userInReview } from '../access-review.ts';
import { emptyMetadata, validateQuestionAboutUser } from '../review-rules.ts';

function validateNamespace({ spec, metadata }: LocalSubjectAccessReview): FieldError[] {
  const { resourceAttributes, nonResourceAttributes } = spec ?? {};
  const errors: FieldError[] = [];
  const { namespace = '' } = resourceAttributes ?? {};
  if (resourceAttributes !== undefined && namespace !== metadata.namespace)
    errors.push(invalid('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace'));
  if (nonResourceAttributes !== undefined) {
    const text = 'disallowed on this kind of request';
    errors.push(invalid('spec.nonResourceAttributes', nonResourceAttributes, text));
  }
  return errors;
}

const validate = (review: LocalSubjectAccessReview): FieldError[] =>
  allErrors(
    validateQuestionAboutUser(review.spec),
    emptyMetadata(review.metadata, 'must be empty except for namespace', ['namespace']),
    validateNamespace(review),
  );

export const localSubjectAccessReviewKind = kind<LocalSubjectAccessReview>(
  'authorization.k8s.io/v1',
  'LocalSubjectAccessReview',
  {
    createOnly: { review: accessReview(validate, userInReview) },
    validateCreate: validate,
    columns: [],
  },
);
