/** Source: k8s.io/apiserver/pkg/authorization/union of v1.33 (behavior and wording). */
import type { Authorizer } from '../../../ports/authorizer.ts';

export const firstThatAllows = (authorizers: readonly Authorizer[]): Authorizer => ({
  async authorize(attributes) {
    const reasons: string[] = [];
    for (const each of authorizers) {
      const decision = await each.authorize(attributes);
      if (decision.allowed) return decision;
      if (decision.reason !== '') reasons.push(decision.reason);
    }
    return { allowed: false, reason: reasons.join('\n') };
  },
  async rulesFor(user, namespace) {
    const found = await Promise.all(authorizers.map((each) => each.rulesFor(user, namespace)));
    return { roles: found.flatMap(({ roles }) => roles), errors: found.flatMap(({ errors }) => errors) };
  },
});
