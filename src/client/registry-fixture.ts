/** The real registry with an in-memory store and with faults that a test injects. */

import { kinds } from '../api/kinds.ts';
import { NAMESPACES, SERVICE_ACCOUNTS } from '../api/resources.ts';
import { resourcePrefix } from '../apiserver/cache/keys.ts';
import { loadWatchCache } from '../apiserver/cache/watch-cache.ts';
import type { Registry } from '../apiserver/registry/registry.ts';
import { startRegistry, TEST_USER } from '../apiserver/registry/testing.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { isApiError } from '../machinery/status.ts';
import type { Timers } from '../platform/platform.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { apiFor } from '../ports/api-for.ts';
import type { ResourceApi, ResourceBackend } from '../ports/backend.ts';
import type { RequestContext } from '../ports/request.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import type { Store } from '../store/store.ts';
import { createSharedInformers, type SharedInformers, type SharedInformersOptions } from './shared-informers.ts';

/** The API that the tested component calls. A test may replace a method in order to delay a call or to lose a response. */
export interface RegistryBackend extends ResourceApi {
  readonly serving: ResourceBackend;
  readonly store: Store;
  /** All calls so far, such as `create pods/binding a/x`. */
  readonly calls: string[];
  /** Makes the next call whose text in `calls` begins with `begin` fail with `error`, without calling the registry. */
  failNext(begin: string, error: Error): void;
  endWatches(): void;
  /**
   * Creates or replaces the object as another client would: the call is not in `calls`, and failNext() does not apply to it. The status, if
   * the kind has one, is written with a second call.
   */
  set<T extends KubeObject>(ref: ResourceRef, object: T): Promise<T>;
  setStatus(ref: ResourceRef, namespace: string | undefined, name: string, status: object): Promise<void>;
  /** Deletes the object without a grace period, as another client would. An object with finalizers remains. */
  remove(ref: ResourceRef, namespace: string | undefined, name: string): Promise<void>;
  /** Returns the objects in the order of namespaces and names. */
  objects(ref: ResourceRef): KubeObject[];
}

export const withInformers = <T extends SharedInformersOptions>(options: T): T & { informers: SharedInformers } => ({
  ...options,
  informers: createSharedInformers(options),
});

export interface RegistryBackendOptions {
  /** If absent, the clock does not advance. */
  timers?: Timers;
  /** Namespaces to create in addition to the system namespaces, each with a ServiceAccount `default`; `a` if absent. */
  namespaces?: readonly string[];
  /** The address range of the Services' cluster IPs; 10.96.0.0/24 if absent. */
  serviceCidr?: string;
}

export async function registryBackend(options: RegistryBackendOptions = {}): Promise<RegistryBackend> {
  const { timers = createVirtualTimers(), namespaces = ['a'], serviceCidr } = options;
  const store = createMemoryStore();
  // The cache of objects() subscribes to the store before the registry does. So the cache already contains each change that a watch
  // delivers.
  const cache = await loadWatchCache({ store, log: silentLog });
  const { registry, backend } = await startRegistry({ store, timers, serviceCidr });
  for (const name of namespaces) {
    await registry.create(NAMESPACES, undefined, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await registry.create(SERVICE_ACCOUNTS, name, account);
  }
  const { calls, failNext, endWatches, ...serving } = withFaults(backend);
  return {
    ...apiFor(serving, TEST_USER),
    serving,
    store,
    calls,
    failNext,
    endWatches,
    ...otherClient(registry),
    objects: ({ group, resource }) => cache.list(resourcePrefix(group, resource)),
  };
}

function withFaults(registry: Registry): ResourceBackend & Pick<RegistryBackend, 'calls' | 'failNext' | 'endWatches'> {
  const calls: string[] = [];
  const failures: { begin: string; error: Error }[] = [];
  const watches = new Set<AbortController>();
  const record = ({ verb, resource, subresource, namespace = '', name = '' }: RequestContext, created = name): void => {
    const shown = verb === 'deletecollection' ? 'deleteCollection' : verb;
    const call = `${shown} ${resource.resource}${subresource === undefined ? '' : `/${subresource}`} ${namespace}/${created}`;
    calls.push(call);
    const index = failures.findIndex(({ begin }) => call.startsWith(begin));
    if (index !== -1) throw failures.splice(index, 1)[0]?.error;
  };
  return {
    calls,
    failNext: (begin, error) => void failures.push({ begin, error }),
    endWatches() {
      for (const watch of watches) watch.abort();
    },
    async get(request) {
      record(request);
      return registry.get(request);
    },
    async list(request, options) {
      record(request);
      return registry.list(request, options);
    },
    async watch(request, options, sink) {
      record(request);
      const watch = new AbortController();
      watches.add(watch);
      try {
        await registry.watch({ ...request, signal: AbortSignal.any([request.signal, watch.signal]) }, options, sink);
      } finally {
        watches.delete(watch);
      }
    },
    async create(request, object, options) {
      record(request, request.name ?? object.metadata.name);
      return registry.create(request, object, options);
    },
    async update(request, object, options) {
      record(request);
      return registry.update(request, object, options);
    },
    async patch(request, type, body, options) {
      record(request);
      return registry.patch(request, type, body, options);
    },
    async delete(request, options) {
      record(request);
      return registry.delete(request, options);
    },
    async deleteCollection(request, options) {
      record(request);
      return registry.deleteCollection(request, options);
    },
    onDrop: registry.onDrop,
  };
}

function otherClient(registry: ResourceApi): Pick<RegistryBackend, 'set' | 'setStatus' | 'remove'> {
  const hasStatus = (ref: ResourceRef): boolean =>
    kinds.some((kind) => kind.group === ref.group && kind.plural === ref.resource && 'status' in kind.subresources);
  return {
    async set<T extends KubeObject>(ref: ResourceRef, object: T): Promise<T> {
      const { resourceVersion: _, ...metadata } = object.metadata;
      const wanted = { ...object, metadata } as T & { status?: object };
      let stored = await registry.update(ref, wanted).catch((error: unknown) => {
        if (!isApiError(error, 'NotFound')) throw error;
        return registry.create(ref, metadata.namespace, wanted);
      });
      if (wanted.status !== undefined && hasStatus(ref)) {
        stored = await registry.update(ref, { ...stored, status: wanted.status } as KubeObject, {
          subresource: 'status',
        });
      }
      return stored as T;
    },
    async setStatus(ref, namespace, name, status) {
      const object = await registry.get(ref, namespace, name);
      await registry.update(ref, { ...object, status } as KubeObject, { subresource: 'status' });
    },
    async remove(ref, namespace, name) {
      await registry.delete(ref, namespace, name, { gracePeriodSeconds: 0 });
    },
  };
}
