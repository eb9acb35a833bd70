/** Placeholders for the authorizers: the registry needs authorizers before the informers that read the roles exist. */
import { privilegedOr } from '../../apiserver/auth/authorization/authorizer.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import type { Authorizers } from './authorizers.ts';

export interface LateAuthorizers extends Authorizers {
  connect(authorizers: Authorizers): void;
}

/** Decisions wait for connect(). Members of system:masters may do anything at all times. */
export function lateAuthorizers(): LateAuthorizers {
  const connected = Promise.withResolvers<Authorizers>();
  const late = (which: keyof Authorizers): Authorizer =>
    privilegedOr({
      authorize: async (attributes) => (await connected.promise)[which].authorize(attributes),
      rulesFor: async (user, namespace) => (await connected.promise)[which].rulesFor(user, namespace),
    });
  return { clients: late('clients'), components: late('components'), connect: connected.resolve };
}
