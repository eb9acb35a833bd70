/**
 * Source: k8s.io/apiserver/pkg/endpoints/filters/authorization.go and handlers/responsewriters/errors.go of v1.33 (behavior and wording).
 */
import { ApiError, forbidden } from '../../machinery/status.ts';
import { type Attributes, type Authorizer, isPath, type ResourceAttributes } from '../../ports/authorizer.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRoute } from '../http/routes.ts';
import { isPrivileged } from './authorization/authorizer.ts';
import { attributesOf, requestAttributes } from './request-attributes.ts';

/**
 * Rejects with 403 Forbidden if the user may not send the request. Returns undefined if the user may do everything, so that requests of
 * administrators do not wait for a promise.
 */
export const authorizeResource = (
  authorizer: Authorizer,
  exchange: Exchange,
  route: ResourceRoute,
): Promise<void> | undefined =>
  privileged(exchange) ? undefined : authorize(authorizer, exchange, resourceAttributes(exchange, route));

/**
 * Like authorizeResource(), for a path such as /apis, or for a resource, a subresource or a method that the server does not serve.
 * `segments`: the decoded segments of the path.
 */
export const authorizeOther = (
  authorizer: Authorizer,
  exchange: Exchange,
  segments: readonly string[],
): Promise<void> | undefined =>
  privileged(exchange)
    ? undefined
    : authorize(authorizer, exchange, { user: exchange.user, ...requestAttributes(exchange, segments) });

/** Whether the user may do everything. If so, records the decision in the audit event. */
function privileged({ user, audit }: Exchange): boolean {
  if (!isPrivileged(user)) return false;
  annotate(audit, true, '');
  return true;
}

/** Rejects with 403 Forbidden if the user may not create the object that a server-side apply would create. */
export async function authorizeCreate(authorizer: Authorizer, exchange: Exchange, route: ResourceRoute): Promise<void> {
  const attributes = { ...resourceAttributes(exchange, route), verb: 'create' };
  const { allowed, reason } = await authorizer.authorize(attributes);
  if (!allowed) throw forbidden(route.ref, route.name ?? '', reason);
}

async function authorize(
  authorizer: Authorizer,
  { audit }: Pick<Exchange, 'audit'>,
  attributes: Attributes,
): Promise<void> {
  const { allowed, reason } = await authorizer.authorize(attributes);
  annotate(audit, allowed, reason);
  if (!allowed) throw refusal(attributes, reason);
}

// As upstream, OPTIONS has no verb, so that only rules for all verbs allow a proxied request with this method.
const resourceAttributes = ({ user, method, query }: Exchange, route: ResourceRoute): ResourceAttributes =>
  attributesOf({ user, ...route, ...(method === 'OPTIONS' && { verb: '' }) }, query.get('fieldSelector'));

export function annotate(audit: Map<string, string>, allowed: boolean, reason: string): void {
  audit.set('authorization.k8s.io/decision', allowed ? 'allow' : 'forbid');
  audit.set('authorization.k8s.io/reason', reason);
}

export function refusal(attributes: Attributes, reason: string): ApiError {
  const text = (cause: string): string => (reason === '' ? cause : `${cause}: ${reason}`);
  const user = quote(attributes.user.name);
  if (isPath(attributes)) {
    const cause = safe(`User ${user} cannot ${attributes.verb} path ${quote(attributes.path)}`);
    return pathForbidden(`forbidden: ${text(cause)}`);
  }
  const { verb, group, resource, subresource, namespace, name = '' } = attributes;
  const what = subresource ? `${resource}/${subresource}` : resource;
  const where = namespace ? `in the namespace ${quote(namespace)}` : 'at the cluster scope';
  const cause = safe(`User ${user} cannot ${verb} resource ${quote(what)} in API group ${quote(group)} ${where}`);
  return forbidden({ group, resource }, name, text(cause));
}

const pathForbidden = (message: string): ApiError =>
  new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: 'Forbidden',
    details: {},
    code: 403,
  });

const quote = (text: string): string => JSON.stringify(text);

/** As upstream, escapes the characters that a browser could read as HTML. */
const safe = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
