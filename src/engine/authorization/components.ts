/** Gives each component of the engine an API with the rights of the component's user, and reports refused requests of components. */
import { NO_RELATION } from '../../apiserver/auth/authorization/node/node-authorizer.ts';
import type { OnRefusal } from '../../apiserver/auth/authorized-backend.ts';
import type { Client } from '../../client/client.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Platform } from '../../platform/platform.ts';
import { type Attributes, type Authorizer, isPath } from '../../ports/authorizer.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { UserInfo } from '../../ports/request.ts';
import { clientFor } from '../users.ts';
import { informersOfUser } from './informers-of-user.ts';

export interface ComponentApi {
  client: Client;
  informers: SharedInformers;
}

/** `reader` is the user whose rights decide what the informers may follow, by default `user`. */
export type Components = (user: UserInfo, reader?: UserInfo) => ComponentApi;

export interface ComponentsOptions extends Platform {
  /** Authorizes the requests of components: see authorizedBackend(). */
  registry: ResourceBackend;
  /** They read with the rights of the API server. */
  informers: SharedInformers;
  authorizer: Authorizer;
  onRefusal: OnRefusal;
}

export function createComponents({ registry, ...options }: ComponentsOptions): Components {
  return (user, reader = user) => ({
    client: clientFor(registry, user),
    informers: informersOfUser(options, reader),
  });
}

export const REFUSED =
  'a component of the engine may not send a request: restore its role, or restart the engine, which restores all roles of the system';

/** Refusals with the same user, verb and resource are logged at most once in this time, because components repeat requests. */
const LOG_MILLIS: Millis = 60_000;

/**
 * Counts and logs requests that were refused because the roles of components allow too little. Ignores refusals for which isOfGonePod()
 * returns true.
 */
export function reportRefusals({ timers, log }: Platform, metrics: Metrics): OnRefusal {
  const refused = metrics.counter(
    'lifepod_component_requests_refused_total',
    "Requests of the engine's own components that the roles of their users do not allow.",
    ['user', 'verb', 'resource'],
  );
  const loggedAt = new Map<string, Millis>();
  return (attributes, reason) => {
    if (isOfGonePod(reason)) return;
    const { verb, user } = attributes;
    const resource = resourceText(attributes);
    refused.add(1, user.name, verb, resource);
    const key = `${user.name} ${verb} ${resource}`;
    const now = timers.now();
    if (now - (loggedAt.get(key) ?? Number.NEGATIVE_INFINITY) < LOG_MILLIS) return;
    loggedAt.set(key, now);
    log.warn(REFUSED, { user: user.name, verb, resource, reason });
  };
}

/**
 * Returns whether the reason is that no Pod of a node agent's node uses the object. Such a refusal occurs after a Pod has been deleted,
 * until the agent knows of the deletion. It does no harm: the volumes of the Pod keep their files, and its defer containers use copies.
 */
export const isOfGonePod = (reason: string): boolean => reason.startsWith(NO_RELATION);

function resourceText(attributes: Attributes): string {
  if (isPath(attributes)) return attributes.path;
  const { group, resource, subresource } = attributes;
  return `${resource}${group === '' ? '' : `.${group}`}${subresource ? `/${subresource}` : ''}`;
}
