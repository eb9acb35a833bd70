/**
 * Remembers the requests that roles allow a component for all objects of a resource. A component sends many requests of few kinds, and a
 * remembered decision costs only one look-up.
 *
 * Invariant: after any change of a role or binding, no earlier decision is used.
 */
import { type Authorizer, type Decision, isPath } from '../../ports/authorizer.ts';
import type { UserInfo } from '../../ports/request.ts';

/**
 * `authorizer` must decide by roles: it allows a request without a name and a namespace only if it allows the request for all objects.
 * `changes` returns another number after each change of a role or binding.
 */
export function rememberGrants(authorizer: Authorizer, changes: () => number): Authorizer {
  let knownAt = changes();
  let known = new WeakMap<UserInfo, Map<string, Decision>>();

  function rememberedOf(user: UserInfo): Map<string, Decision> {
    if (changes() !== knownAt) {
      knownAt = changes();
      known = new WeakMap();
    }
    const remembered = known.get(user) ?? new Map<string, Decision>();
    known.set(user, remembered);
    return remembered;
  }

  return {
    rulesFor: authorizer.rulesFor,
    async authorize(attributes) {
      if (isPath(attributes)) return authorizer.authorize(attributes);
      const { user, verb, group, resource, subresource = '' } = attributes;
      const remembered = rememberedOf(user);
      const key = `${verb} ${group}/${resource}/${subresource}`;
      const found = remembered.get(key);
      if (found !== undefined) return found;
      const decision = await authorizer.authorize({ user, verb, group, resource, subresource });
      if (!decision.allowed) return authorizer.authorize(attributes);
      // If a role changed during the decision, rememberedOf() no longer returns this map.
      remembered.set(key, decision);
      return decision;
    },
  };
}
