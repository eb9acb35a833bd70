import type { KubeList, KubeObject, ResourceRef, Status } from '../machinery/meta.ts';
import type { ResourceApi, WatchEvent } from '../ports/backend.ts';
import type { Client, ResourceClient } from './client.ts';

export const clientOf = (api: ResourceApi): Client => ({
  api,
  resource: <T extends KubeObject>(ref: ResourceRef) => resourceClient<T>(api, ref),
});

function resourceClient<T extends KubeObject>(api: ResourceApi, ref: ResourceRef): ResourceClient<T> {
  return {
    ref,
    get: (name, namespace) => api.get(ref, namespace, name) as Promise<T>,
    list: (options) => api.list(ref, options ?? {}) as Promise<KubeList<T>>,
    watch: (options, sink, signal) => api.watch(ref, options, sink as (event: WatchEvent) => void, signal),
    create: (object, options) => api.create(ref, object.metadata.namespace, object, options) as Promise<T>,
    update: (object, options) => api.update(ref, object, options) as Promise<T>,
    updateStatus: (object) => api.update(ref, object, { subresource: 'status' }) as Promise<T>,
    patch: (name, namespace, type, body, subresource) =>
      api.patch(ref, namespace, name, type, body, { subresource }) as Promise<T>,
    delete: (name, namespace, options) => api.delete(ref, namespace, name, options) as Promise<T | Status>,
    createSubresource: (name, namespace, subresource, body) => api.create(ref, namespace, body, { name, subresource }),
  };
}
