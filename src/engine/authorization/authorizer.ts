/** The authorizers of the engine, in the order in which they are asked: Node, RBAC. */
import { createNodeAuthorizer } from '../../apiserver/auth/authorization/node/node-authorizer.ts';
import { createRbac } from '../../apiserver/auth/authorization/rbac.ts';
import { firstThatAllows } from '../../apiserver/auth/authorization/union.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import { followNodes } from './node-objects.ts';
import { followRbac } from './rbac-objects.ts';

/** Starts to follow the objects on which decisions depend. Decisions wait until those that exist have been read. */
export const createAuthorizer = (options: { informers: SharedInformers; signal: AbortSignal }): Authorizer =>
  firstThatAllows([createNodeAuthorizer(followNodes(options)), createRbac(followRbac(options))]);
