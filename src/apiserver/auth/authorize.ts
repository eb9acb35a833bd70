/**
 * Authorizes requests: members of the group system:masters may do everything, and other users nothing.
 * Source of the messages: v1.33 apiserver authorization.
 */

import { ApiError, forbidden } from '../../machinery/status.ts';
import type { UserInfo } from '../../ports/request.ts';
import type { ResourceRoute } from '../http/routes.ts';

const mayDoAll = (user: UserInfo): boolean => user.groups.includes('system:masters');

/** Throws 403 Forbidden if the user may not send the request. */
export function authorizeResource(user: UserInfo, route: ResourceRoute): void {
  if (mayDoAll(user)) return;
  const { group, resource } = route.ref;
  const what = route.subresource === undefined ? resource : `${resource}/${route.subresource}`;
  const where = route.namespace === undefined ? 'at the cluster scope' : `in the namespace ${quote(route.namespace)}`;
  throw forbidden(
    { group, resource },
    route.name ?? '',
    `User ${quote(user.name)} cannot ${route.verb} resource ${quote(what)} in API group ${quote(group)} ${where}`,
  );
}

/** Throws 403 Forbidden if the user may not access `path`, which belongs to no resource, for example /apis. */
export function authorizePath(user: UserInfo, method: string, path: string): void {
  if (mayDoAll(user)) return;
  throw new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `forbidden: User ${quote(user.name)} cannot ${method.toLowerCase()} path ${quote(path)}`,
    reason: 'Forbidden',
    details: {},
    code: 403,
  });
}

const quote = (text: string): string => JSON.stringify(text);
