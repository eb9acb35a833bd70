import type { Authorizer, Decision } from '../../../ports/authorizer.ts';
import type { UserInfo } from '../../../ports/request.ts';

/** Source: user.SystemPrivilegedGroup of k8s.io/apiserver. */
const PRIVILEGED_GROUP = 'system:masters';

export const isPrivileged = ({ groups }: UserInfo): boolean => groups.includes(PRIVILEGED_GROUP);

const ALLOWED: Promise<Decision> = Promise.resolve({ allowed: true, reason: '' });
const DENIED: Promise<Decision> = Promise.resolve({ allowed: false, reason: '' });

/**
 * Allows members of system:masters everything, whatever the roles are, and asks `others` about all other users. rulesFor() returns only the
 * rules of `others`.
 */
export const privilegedOr = (others?: Authorizer): Authorizer => ({
  authorize(attributes) {
    if (isPrivileged(attributes.user)) return ALLOWED;
    return others?.authorize(attributes) ?? DENIED;
  },
  async rulesFor(user, namespace) {
    return (await others?.rulesFor(user, namespace)) ?? { roles: [], errors: [] };
  },
});
