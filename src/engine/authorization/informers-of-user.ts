/**
 * Limits the shared informers to the rights of one user: a component follows only what its user may list and watch. The rights are examined
 * when a component begins to follow a resource: as with upstream's watches, a right that is revoked later remains effective until the next
 * start.
 */

import type { OnRefusal } from '../../apiserver/auth/authorized-backend.ts';
import { attributesOf } from '../../apiserver/auth/request-attributes.ts';
import { backOffMillis } from '../../client/back-off.ts';
import type { Informer } from '../../client/informer.ts';
import type { FollowOptions, SharedInformers } from '../../client/shared-informers.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import type { UserInfo } from '../../ports/request.ts';

const RETRY_BASE_MILLIS = 1000;
const RETRY_MAX_MILLIS = 30_000;

export interface InformersOfUserOptions {
  informers: SharedInformers;
  authorizer: Authorizer;
  onRefusal: OnRefusal;
  timers: Timers;
}

/**
 * Until the user may list and watch a resource, its informer is empty and not synced, and the authorizer is asked again with a back-off.
 */
export function informersOfUser(
  { informers, authorizer, onRefusal, timers }: InformersOfUserOptions,
  user: UserInfo,
): SharedInformers {
  async function isRefused(ref: ResourceRef, selector: string | undefined): Promise<boolean> {
    for (const verb of ['list', 'watch']) {
      const attributes = attributesOf({ user, verb, ref }, selector);
      const { allowed, reason } = await authorizer.authorize(attributes);
      if (allowed) continue;
      onRefusal(attributes, reason);
      return true;
    }
    return false;
  }

  async function permitted(ref: ResourceRef, { fieldSelector, signal }: FollowOptions): Promise<void> {
    for (let tries = 1; !signal.aborted && (await isRefused(ref, fieldSelector)); tries++)
      await pause(timers, backOffMillis(tries, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
  }

  return {
    follow<T extends KubeObject>(ref: ResourceRef, options: FollowOptions, handlers = {}) {
      return lateInformer<T>(permitted(ref, options), () => informers.follow<T>(ref, options, handlers));
    },
  };
}

const NONE: ReadonlySet<never> = new Set<never>();

/** The informer is empty until `permitted` resolves. */
function lateInformer<T extends KubeObject>(permitted: Promise<void>, follow: () => Informer<T>): Informer<T> {
  let informer: Informer<T> | undefined;
  const followed = permitted.then(() => {
    // `informer` must be set here: the handlers read it, and are called before `followed` resolves.
    informer = follow();
    return informer;
  });
  return {
    synced: followed.then(({ synced }) => synced),
    get: (namespace, name) => informer?.get(namespace, name),
    list: () => informer?.list() ?? [],
    by: (keysOf, key) => informer?.by(keysOf, key) ?? NONE,
    reached: async (resourceVersion) => (await followed).reached(resourceVersion),
    gone: async (object) => (await followed).gone(object),
  };
}
