/**
 * The registry: implements the resource verbs of the API on a store, for any kinds.
 *
 * Boundary: no HTTP and no authorization. Everything specific to a kind comes from its definition, except for the few steps
 * of admission that need other objects: namespaces, ServiceAccounts, cluster IPs.
 *
 * Invariants:
 *  1. Reads come from the watch cache, which is never behind an acknowledged write; those of uncached kinds from the store.
 *  2. Every write compares the revision that it is based on. After a conflict it starts over from the newest state, so no
 *     update is lost.
 *  3. Returned objects are frozen and shared; objects that are passed in are copied.
 *  4. A write with dryRun passes every check and changes nothing.
 */
import { randomBytes as systemRandomBytes } from 'node:crypto';
import type { KindDefinition } from '../../api/kind.ts';
import { methodNotAllowed } from '../../machinery/status.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { Store } from '../../store/store.ts';
import { loadWatchCache } from '../cache/watch-cache.ts';
import type { TokenIssuer } from '../pki/tokens.ts';
import { applyObject } from './apply.ts';
import type { RegistryContext } from './context.ts';
import { createObject } from './create.ts';
import { deleteObject, deleteObjects } from './delete.ts';
import { createObjectRoom } from './object-memory-limit.ts';
import { getObject, listObjects } from './reads/list.ts';
import { createSelectorRoom } from './reads/selector-limit.ts';
import { watchObjects } from './reads/watch.ts';
import { indexResources } from './resources.ts';
import { createServiceAllocator } from './services/service-allocator.ts';
import { createBinding, createSubresource } from './subresource.ts';
import { patchObject, updateObject } from './update.ts';

export interface RegistryOptions {
  store: Store;
  kinds: readonly KindDefinition[];
  timers: Timers;
  log: Log;
  /** The cluster IPs of Services: IPv4, /8 to /28. */
  serviceCidr: string;
  /** The source of UIDs, generated names and random choices; if absent, the system's. */
  randomBytes?: (size: number) => Uint8Array;
  /** How much memory the objects may take; if absent, a quarter of V8's maximum heap. */
  roomBytes?: number;
  /** Serves the token subresource of ServiceAccounts; if absent, it is unavailable. */
  issueToken?: TokenIssuer['issue'];
}

export interface Registry extends ResourceBackend {
  /** The revision of the newest write. */
  revision(): number;
  /** Stops following the store; running watches get no more events. The store stays open. */
  close(): void;
}

/** Loads all stored objects. Rejects if the store cannot be read or the Service CIDR is invalid. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { store, timers, log, randomBytes = systemRandomBytes } = options;
  const resources = indexResources(options.kinds);
  const cache = await loadWatchCache({ store, log, uncached: resources.uncached });
  const services = createServiceAllocator(cache, options.serviceCidr, randomBytes);
  const room = createObjectRoom(() => cache.heldBytes(), options.roomBytes);
  const { issueToken } = options;
  const selectors = createSelectorRoom();
  const context = { store, cache, resources, timers, log, services, room, selectors, randomBytes, issueToken };
  return { ...createBackend(context), revision: () => cache.revision(), close: () => cache.close() };
}

/** Every method is async, so that all failures are rejections. */
function createBackend(context: RegistryContext): ResourceBackend {
  const { resources } = context;
  return {
    async get(ref, namespace, name) {
      return getObject(context, resources.find(ref), namespace, name);
    },
    async list(ref, options, signal) {
      return listObjects(context, resources.find(ref), options, signal);
    },
    async watch(ref, options, sink, signal) {
      return watchObjects(context, resources.find(ref), options, sink, signal);
    },
    async create(ref, namespace, object, options = {}) {
      const resource = resources.find(ref);
      const { name, subresource } = options;
      if (subresource) return createSubresource(context, resource, { namespace, name, subresource }, object, options);
      if (resource.kind.createOnly) {
        if (resource.kind.kind !== 'Binding') throw methodNotAllowed();
        return createBinding(context, namespace, object, options);
      }
      return createObject(context, resource, namespace, object, options);
    },
    async update(ref, object, options = {}) {
      return updateObject(context, resources.find(ref), object, options);
    },
    async patch(ref, namespace, name, type, body, options = {}) {
      const resource = resources.find(ref);
      const at = { namespace, name };
      return type === 'application/apply-patch+yaml'
        ? applyObject(context, resource, at, body, options)
        : patchObject(context, resource, at, { type, body }, options);
    },
    async delete(ref, namespace, name, options = {}) {
      return deleteObject(context, resources.find(ref), { namespace, name }, options);
    },
    async deleteCollection(ref, options) {
      return deleteObjects(context, resources.find(ref), options);
    },
    onDrop(listener) {
      return context.cache.onDrop((prefix, object) => {
        for (const served of resources.served(prefix, object)) listener(served);
      });
    },
  };
}
