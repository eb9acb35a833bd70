/**
 * Shares a limited number of places, for example for requests in flight or for watches, so that no user can take all places.
 *
 * Invariants:
 *  1. Members of system:masters get any free place.
 *  2. A quarter of the places is only for members of system:masters and for components of the cluster.
 *  3. Any other user gets a place only if the user has fewer places than are free: a single user gets at most half of the places for users,
 *     two users get at most a third each. So the next user finds a free place.
 */

import type { UserInfo } from '../../../ports/request.ts';
import { isPrivileged } from '../../auth/authorization/authorizer.ts';

/** The part of the places that users who are neither administrators nor components may have together. */
const PART_OF_OTHERS = 0.75;

const COMPONENTS = 'system:serviceaccounts:kube-system';
const NODES = 'system:nodes';

export interface SharedPlaces {
  /** Returns a function that frees the place; undefined if the user may not have a place now. */
  take(user: UserInfo): (() => void) | undefined;
}

/** Whether the user is a component of the cluster, such as a node or the scheduler, or a ServiceAccount of kube-system. */
export const isComponent = ({ name, groups }: UserInfo): boolean =>
  name.startsWith('system:kube-') || groups.includes(NODES) || groups.includes(COMPONENTS);

export function sharedPlaces(limit: number): SharedPlaces {
  const limitOfOthers = Math.ceil(limit * PART_OF_OTHERS);
  /** The number of places by the name of the user, without members of system:masters. */
  const held = new Map<string, number>();
  let taken = 0;
  let takenByOthers = 0;
  const hasShare = (user: UserInfo): boolean => {
    if (taken >= limit || isPrivileged(user)) return taken < limit;
    const free = isComponent(user) ? limit - taken : Math.min(limit - taken, limitOfOthers - takenByOthers);
    return (held.get(user.name) ?? 0) < free;
  };
  const count = (user: UserInfo, change: 1 | -1): void => {
    taken += change;
    if (isPrivileged(user)) return;
    if (!isComponent(user)) takenByOthers += change;
    const own = (held.get(user.name) ?? 0) + change;
    if (own > 0) held.set(user.name, own);
    else held.delete(user.name);
  };
  return {
    take(user) {
      if (!hasShare(user)) return undefined;
      count(user, 1);
      let isHeld = true;
      return () => {
        if (isHeld) count(user, -1);
        isHeld = false;
      };
    },
  };
}
