/** A placeholder for the authorizer: the registry needs it before there are the informers by which the authorizer knows the roles. */
import { privilegedOr } from '../../apiserver/auth/authorization/authorizer.ts';
import type { Authorizer } from '../../ports/authorizer.ts';

export interface LateAuthorizer {
  authorizer: Authorizer;
  connect(authorizer: Authorizer): void;
}

/** Before connect(), only members of system:masters may do anything. */
export function lateAuthorizer(): LateAuthorizer {
  let connected: Authorizer | undefined;
  const others: Authorizer = {
    authorize: async (attributes) => connected?.authorize(attributes) ?? { allowed: false, reason: '' },
    rulesFor: async (user, namespace) => connected?.rulesFor(user, namespace) ?? { roles: [], errors: [] },
  };
  return {
    authorizer: privilegedOr(others),
    connect: (authorizer) => {
      connected = authorizer;
    },
  };
}
