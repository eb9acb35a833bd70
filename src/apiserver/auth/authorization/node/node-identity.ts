/** Source: pkg/auth/nodeidentifier of v1.33 (behavior). */
import type { UserInfo } from '../../../../ports/request.ts';

const USER_PREFIX = 'system:node:';
const GROUP = 'system:nodes';

export const isInNodesGroup = ({ groups }: UserInfo): boolean => groups.includes(GROUP);

/** Returns the name of the node, which may be empty; undefined if the user is not a node. */
export const nodeNameOf = (user: UserInfo): string | undefined =>
  user.name.startsWith(USER_PREFIX) && isInNodesGroup(user) ? user.name.slice(USER_PREFIX.length) : undefined;
