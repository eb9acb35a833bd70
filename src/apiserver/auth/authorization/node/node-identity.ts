/** Source: pkg/auth/nodeidentifier of v1.33 (behavior). */
import type { UserInfo } from '../../../../ports/request.ts';

const USER_PREFIX = 'system:node:';
const GROUP = 'system:nodes';

/** Returns the name of the node, which may be empty; undefined if the user is not a node. */
export const nodeNameOf = ({ name, groups }: UserInfo): string | undefined =>
  name.startsWith(USER_PREFIX) && groups.includes(GROUP) ? name.slice(USER_PREFIX.length) : undefined;
