/** Creates the authorizers of the engine. They ask the Node authorizer first, then RBAC. */
import { createNodeAuthorizer } from '../../apiserver/auth/authorization/node/node-authorizer.ts';
import { createRbac } from '../../apiserver/auth/authorization/rbac.ts';
import { firstThatAllows } from '../../apiserver/auth/authorization/union.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import { followNodes } from './node-objects.ts';
import { followRbac } from './rbac-objects.ts';
import { rememberGrants } from './remember-grants.ts';

export interface Authorizers {
  clients: Authorizer;
  /** Makes the same decisions as `clients`, but remembers grants. */
  components: Authorizer;
}

/** Starts to follow the objects on which the decisions depend. A decision waits until the existing objects have been read. */
export function createAuthorizers(options: { informers: SharedInformers; signal: AbortSignal }): Authorizers {
  const { changes, ...objects } = followRbac(options);
  const node = createNodeAuthorizer(followNodes(options));
  const rbac = createRbac(objects);
  return {
    clients: firstThatAllows([node, rbac]),
    components: firstThatAllows([node, rememberGrants(rbac, changes)]),
  };
}
