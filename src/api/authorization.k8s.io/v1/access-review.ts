/** Answers the reviews that ask whether a user may send a request. Source: pkg/registry/authorization of v1.33 (behavior). */
import { type FieldError, firstErrors } from '../../../machinery/field-error.ts';
import { type FieldRequirement, parseFieldSelector } from '../../../machinery/field-selector.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { invalidObject } from '../../../machinery/status.ts';
import type { Attributes } from '../../../ports/authorizer.ts';
import type { UserInfo } from '../../../ports/request.ts';
import type { Reviewer } from '../../../ports/reviews.ts';
import type {
  FieldSelectorAttributes,
  SelfSubjectAccessReviewSpec,
  SubjectAccessReviewSpec,
  SubjectAccessReviewStatus,
} from '../../generated/types.ts';

export const AUTHORIZATION_GROUP = 'authorization.k8s.io';

interface AccessReview extends KubeObject {
  spec?: SelfSubjectAccessReviewSpec;
  status?: SubjectAccessReviewStatus;
}

/**
 * Returns a function that answers whether a user may send the request in a review. The function throws 422 if the review is invalid.
 * `userOf` returns the user that the review is about.
 */
export const accessReview =
  <T extends AccessReview>(
    validate: (review: T) => FieldError[],
    userOf: (review: T, reviewer: Reviewer) => UserInfo,
  ) =>
  async (review: T, reviewer: Reviewer): Promise<T> => {
    const errors = firstErrors(() => validate(review));
    const { kind, metadata, spec = {} } = review;
    if (errors.length > 0) throw invalidObject({ group: AUTHORIZATION_GROUP, kind }, metadata.name ?? '', errors);
    const { allowed, reason } = await reviewer.authorize(attributesOf(spec, userOf(review, reviewer)));
    return { ...review, status: { allowed, ...(reason === '' ? {} : { reason }) } };
  };

function attributesOf(spec: SelfSubjectAccessReviewSpec, user: UserInfo): Attributes {
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (resourceAttributes === undefined) {
    const { verb = '', path = '' } = nonResourceAttributes ?? {};
    return { user, verb, path };
  }
  const { verb = '', group = '', resource = '', subresource, namespace, name } = resourceAttributes;
  const fieldSelector = requirementsOf(resourceAttributes.fieldSelector);
  return { user, verb, group, resource, subresource, namespace, name, fieldSelector };
}

/**
 * Returns the requirements that compare a field with one value; none if the raw selector is invalid. As in upstream, other requirements are
 * dropped, because they only restrict the request further.
 */
function requirementsOf({ rawSelector, requirements = [] }: FieldSelectorAttributes = {}): FieldRequirement[] {
  if (rawSelector) return parsed(rawSelector);
  return requirements.flatMap(({ key, operator, values = [] }): FieldRequirement[] => {
    const [value] = values;
    if (value === undefined || values.length > 1) return [];
    if (operator === 'In') return [{ field: key, op: '=', value }];
    return operator === 'NotIn' ? [{ field: key, op: '!=', value }] : [];
  });
}

function parsed(selector: string): FieldRequirement[] {
  try {
    return parseFieldSelector(selector);
  } catch {
    return [];
  }
}

export const userInReview = ({ spec }: { spec?: SubjectAccessReviewSpec }): UserInfo => {
  const { user = '', uid, groups = [], extra } = spec ?? {};
  return { name: user, ...(uid ? { uid } : {}), groups, ...(extra === undefined ? {} : { extra }) };
};
