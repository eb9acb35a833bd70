/**
 * The SelfSubjectRulesReview: asks for the rules that apply to the user who sends it, in a namespace.
 * Source: pkg/registry/authorization/selfsubjectrulesreview of v1.33.
 */
import { badRequest } from '../../../../machinery/status.ts';
import type { AccessRule } from '../../../../ports/authorizer.ts';
import type { Reviewer } from '../../../../ports/reviews.ts';
import { kind } from '../../../declaration.ts';
import type { SelfSubjectRulesReview, SubjectRulesReviewStatus } from '../../../generated/types.ts';

async function review(sent: SelfSubjectRulesReview, reviewer: Reviewer): Promise<SelfSubjectRulesReview> {
  const { namespace = '' } = sent.spec ?? {};
  if (namespace === '') throw badRequest('no namespace on request');
  const { rules, errors } = await reviewer.rulesFor(reviewer.user, namespace);
  return { ...sent, status: statusOf(rules, errors) };
}

function statusOf(rules: readonly AccessRule[], errors: readonly string[]): SubjectRulesReviewStatus {
  const [error, ...more] = errors;
  return {
    resourceRules: rules
      .filter(({ resources = [] }) => resources.length > 0)
      .map(({ nonResourceURLs: _, ...rule }) => rule),
    nonResourceRules: rules
      .filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0)
      .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
    incomplete: false,
    ...(error === undefined ? {} : { evaluationError: more.length === 0 ? error : `[${errors.join(', ')}]` }),
  };
}

export const selfSubjectRulesReviewKind = kind<SelfSubjectRulesReview>(
  'authorization.k8s.io/v1',
  'SelfSubjectRulesReview',
  {
    scope: 'Cluster',
    createOnly: { review },
    columns: [],
  },
);
