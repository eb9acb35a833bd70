/** Adds typed access by resource to a ResourceBackend. */

import type { KubeList, KubeObject, ResourceRef, Status } from '../machinery/meta.ts';
import type { ResourceBackend, WatchEvent } from '../ports/backend.ts';
import type { Client, ResourceClient } from './client.ts';

/** Returns a client that sends its calls to `backend`. */
export const backendClient = (backend: ResourceBackend): Client => ({
  backend,
  resource: <T extends KubeObject>(ref: ResourceRef) => resourceClient<T>(backend, ref),
});

/** Returns a client of the API server in the same process. `backend` is the registry, which the client calls without HTTP. */
export const inProcessClient = backendClient;

function resourceClient<T extends KubeObject>(backend: ResourceBackend, ref: ResourceRef): ResourceClient<T> {
  return {
    ref,
    get: (name, namespace) => backend.get(ref, namespace, name) as Promise<T>,
    list: (options) => backend.list(ref, options ?? {}) as Promise<KubeList<T>>,
    watch: (options, sink, signal) => backend.watch(ref, options, sink as (event: WatchEvent) => void, signal),
    create: (object, options) => backend.create(ref, object.metadata.namespace, object, options) as Promise<T>,
    update: (object, options) => backend.update(ref, object, options) as Promise<T>,
    updateStatus: (object) => backend.update(ref, object, { subresource: 'status' }) as Promise<T>,
    patch: (name, namespace, type, body, subresource) =>
      backend.patch(ref, namespace, name, type, body, { subresource }) as Promise<T>,
    delete: (name, namespace, options) => backend.delete(ref, namespace, name, options) as Promise<T | Status>,
    createSubresource: (name, namespace, subresource, body) =>
      backend.create(ref, namespace, body, { name, subresource }),
  };
}
