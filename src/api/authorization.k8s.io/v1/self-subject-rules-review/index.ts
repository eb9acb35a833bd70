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
  const { roles, errors } = await reviewer.rulesFor(reviewer.user, namespace);
  return { ...sent, status: statusOf(roles, errors) };
}

/** If the rules are longer, the response omits the rest, and its field `incomplete` is true. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

const lengthOf = (list: readonly string[]): number => list.reduce((length, text) => length + text.length + 3, 0);

function firstRules(roles: readonly (readonly AccessRule[])[]): { rules: AccessRule[]; incomplete: boolean } {
  const rules: AccessRule[] = [];
  let length = 0;
  for (const role of roles)
    for (const rule of role) {
      length += Object.values(rule).reduce((sum, list) => sum + lengthOf(list), 0);
      if (length > MAX_CHARACTERS) return { rules, incomplete: true };
      rules.push(rule);
    }
  return { rules, incomplete: false };
}

const TOO_MANY = 'the rules are too many for a response';

function statusOf(roles: readonly (readonly AccessRule[])[], missing: readonly string[]): SubjectRulesReviewStatus {
  const { rules, incomplete } = firstRules(roles);
  const errors = incomplete ? [...missing, TOO_MANY] : missing;
  const [error, ...more] = errors;
  return {
    resourceRules: rules
      .filter(({ resources = [] }) => resources.length > 0)
      .map(({ nonResourceURLs: _, ...rule }) => rule),
    nonResourceRules: rules
      .filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0)
      .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
    incomplete,
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
