/** Members of system:masters may do everything, whatever the roles are. */
import type { Authorizer, Decision } from '../../../ports/authorizer.ts';
import type { UserInfo } from '../../../ports/request.ts';

/** Source: user.SystemPrivilegedGroup of k8s.io/apiserver. */
const PRIVILEGED_GROUP = 'system:masters';

export const isPrivileged = ({ groups }: UserInfo): boolean => groups.includes(PRIVILEGED_GROUP);

const ALLOWED: Promise<Decision> = Promise.resolve({ allowed: true, reason: '' });
const DENIED: Promise<Decision> = Promise.resolve({ allowed: false, reason: '' });

/** Allows members of system:masters everything, and asks `others` for all other users. By default, these may do nothing. */
export const privilegedOr = (others?: Authorizer): Authorizer => ({
  authorize(attributes) {
    if (isPrivileged(attributes.user)) return ALLOWED;
    return others?.authorize(attributes) ?? DENIED;
  },
  async rulesFor(user, namespace) {
    return (await others?.rulesFor(user, namespace)) ?? { roles: [], errors: [] };
  },
});
