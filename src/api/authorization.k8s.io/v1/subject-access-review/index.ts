/**
 * The SubjectAccessReview: asks whether a user may send a request.
 * Source: pkg/registry/authorization/subjectaccessreview and pkg/apis/authorization of v1.33.
 */
import { allErrors, type FieldError } from '../../../../machinery/field-error.ts';
import { kind } from '../../../declaration.ts';
import type { SubjectAccessReview } from '../../../generated/types.ts';
import { accessReview, userInReview } from '../access-review.ts';
import { emptyMetadata, validateQuestionAboutUser } from '../review-rules.ts';

const validate = ({ spec, metadata }: SubjectAccessReview): FieldError[] =>
  allErrors(validateQuestionAboutUser(spec), emptyMetadata(metadata, 'must be empty', []));

export const subjectAccessReviewKind = kind<SubjectAccessReview>('authorization.k8s.io/v1', 'SubjectAccessReview', {
  scope: 'Cluster',
  createOnly: { review: accessReview(validate, userInReview) },
  validateCreate: validate,
  columns: [],
});
