import type { ResourceApi, ResourceBackend } from './backend.ts';
import type { RequestContext, UserInfo } from './request.ts';

const NEVER = new AbortController().signal;

export function apiFor(backend: ResourceBackend, user: UserInfo): ResourceApi {
  const request = (
    given: Omit<RequestContext, 'user' | 'source' | 'signal' | 'audit'>,
    signal = NEVER,
  ): RequestContext => ({
    user,
    source: 'component',
    signal,
    audit: new Map(),
    ...given,
  });
  return {
    get: async (resource, namespace, name) => backend.get(request({ verb: 'get', resource, namespace, name })),
    list: async (resource, options, signal) =>
      backend.list(request({ verb: 'list', resource, namespace: options.namespace }, signal), options),
    watch: async (resource, options, sink, signal) =>
      backend.watch(request({ verb: 'watch', resource, namespace: options.namespace }, signal), options, sink),
    create: async (resource, namespace, object, { name, subresource, ...options } = {}) =>
      backend.create(request({ verb: 'create', resource, subresource, namespace, name }), object, options),
    async update(resource, object, { subresource, ...options } = {}) {
      const { namespace, name } = object.metadata;
      return backend.update(request({ verb: 'update', resource, subresource, namespace, name }), object, options);
    },
    patch: async (resource, namespace, name, type, body, { subresource, ...options } = {}) =>
      backend.patch(request({ verb: 'patch', resource, subresource, namespace, name }), type, body, options),
    delete: async (resource, namespace, name, options) =>
      backend.delete(request({ verb: 'delete', resource, namespace, name }), options),
    deleteCollection: async (resource, options) =>
      backend.deleteCollection(request({ verb: 'deletecollection', resource, namespace: options.namespace }), options),
  };
}
