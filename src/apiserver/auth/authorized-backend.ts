/**
 * Wraps the backend for components of the same process, whose requests need the same rights as over HTTPS. The HTTP server authorizes the
 * requests of its clients itself, including those for other paths and for resources that do not exist.
 */
import type { Attributes, Authorizer } from '../../ports/authorizer.ts';
import type { ListOptions, ResourceBackend } from '../../ports/backend.ts';
import type { RequestContext } from '../../ports/request.ts';
import { isPrivileged } from './authorization/authorizer.ts';
import { annotate, refusal } from './authorize.ts';
import { attributesOf } from './request-attributes.ts';

export type OnRefusal = (attributes: Attributes, reason: string) => void;

export function authorizedBackend<Backend extends ResourceBackend>(
  backend: Backend,
  authorizer: Authorizer,
  onRefusal: OnRefusal,
): Backend {
  async function authorize(request: RequestContext, options: ListOptions = {}): Promise<void> {
    const attributes = attributesOf({ ...request, ref: request.resource }, options.fieldSelector);
    const { allowed, reason } = await authorizer.authorize(attributes);
    annotate(request.audit, allowed, reason);
    if (allowed) return;
    onRefusal(attributes, reason);
    throw refusal(attributes, reason);
  }
  /**
   * Rejects with 403 Forbidden if the user may not send the request. Returns undefined if the user may do everything, so that the requests
   * of the API server itself are not delayed.
   */
  function authorized(request: RequestContext, options?: ListOptions): Promise<void> | undefined {
    if (!isPrivileged(request.user)) return authorize(request, options);
    annotate(request.audit, true, '');
    return undefined;
  }
  return {
    ...backend,
    async get(request) {
      await authorized(request);
      return backend.get(request);
    },
    async list(request, options) {
      await authorized(request, options);
      return backend.list(request, options);
    },
    async watch(request, options, sink) {
      await authorized(request, options);
      return backend.watch(request, options, sink);
    },
    async create(request, object, options) {
      await authorized(request);
      return backend.create(request, object, options);
    },
    async update(request, object, options) {
      await authorized(request);
      return backend.update(request, object, options);
    },
    async patch(request, type, body, options) {
      await authorized(request);
      const mayCreate = async (): Promise<void> => authorized({ ...request, verb: 'create' });
      return backend.patch(request, type, body, { mayCreate, ...options });
    },
    async delete(request, options) {
      await authorized(request);
      return backend.delete(request, options);
    },
    async deleteCollection(request, options) {
      await authorized(request, options);
      return backend.deleteCollection(request, options);
    },
  };
}
