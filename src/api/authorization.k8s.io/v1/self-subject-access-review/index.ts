/**
 * The SelfSubjectAccessReview: asks whether the user who sends it may send another request.
 * Source: pkg/registry/authorization/selfsubjectaccessreview and pkg/apis/authorization of v1.33.
 */
import { allErrors, type FieldError } from '../../../../machinery/field-error.ts';
import { kind } from '../../../declaration.ts';
import type { SelfSubjectAccessReview } from '../../../generated/types.ts';
import { accessReview } from '../access-review.ts';
import { emptyMetadata, validateQuestion } from '../review-rules.ts';

const validate = ({ spec, metadata }: SelfSubjectAccessReview): FieldError[] =>
  allErrors(validateQuestion(spec), emptyMetadata(metadata, 'must be empty', []));

export const selfSubjectAccessReviewKind = kind<SelfSubjectAccessReview>(
  'authorization.k8s.io/v1',
  'SelfSubjectAccessReview',
  {
    scope: 'Cluster',
    createOnly: { review: accessReview(validate, (_, { user }) => user) },
    validateCreate: validate,
    columns: [],
  },
);
