/**
 * The registry implements the resource verbs of the API, on top of a store, for any kinds except computed ones.
 *
 * Boundary: no HTTP and no authorization. The behavior that is specific to a kind comes from its definition, except for steps
 * that need other objects, such as admission and cluster IPs, and for evictions, tokens and the deletion of Namespaces.
 *
 * Invariants:
 *  1. Current objects are read from the watch cache, once it contains every acknowledged write (reads/freshness.ts). Objects of
 *     uncached kinds, older revisions and later pages of lists are read from the store.
 *  2. Every write is conditional on the revision that it is based on. After a conflict, the write starts over from the newest
 *     state, so no update is lost.
 *  3. Returned objects may be frozen and shared with other readers. Objects that are passed in are copied.
 *  4. A write with dryRun stores nothing. It makes the same checks, except those of the size of the object, of the memory of all
 *     objects (object-memory-limit.ts) and of the space of the store.
 */
import { randomBytes as systemRandomBytes } from 'node:crypto';
import type { KindCatalog } from '../../api/catalog.ts';
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
  catalog: KindCatalog;
  timers: Timers;
  log: Log;
  /** The network of the cluster IPs of Services: IPv4, from /8 to /28, such as 10.96.0.0/16. */
  serviceCidr: string;
  /** The source of UIDs, generated names and random choices. The default is the system's random number generator. */
  randomBytes?: (size: number) => Uint8Array;
  /**
   * The memory that all cached objects together may take before writes of clients are rejected, in bytes. The default is a
   * quarter of V8's maximum heap.
   */
  roomBytes?: number;
  /** Issues the tokens for the token subresource of ServiceAccounts. If absent, requests for tokens fail with 503. */
  issueToken?: TokenIssuer['issue'];
}

export interface Registry extends ResourceBackend {
  /** Returns the revision of the newest write. */
  revision(): number;
  /** Ends the subscription to the store: running watches get no more changes. Does not close the store. */
  close(): void;
}

/**
 * Creates a registry, and loads all stored objects except those of uncached kinds. Rejects if the store cannot be read or the
 * Service CIDR is invalid.
 */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { store, timers, log, randomBytes = systemRandomBytes } = options;
  const resources = indexResources(options.catalog);
  const cache = await loadWatchCache({ store, log, uncached: resources.uncached });
  const services = createServiceAllocator({ cache, store }, options.serviceCidr, randomBytes);
  const room = createObjectRoom(() => cache.heldBytes(), options.roomBytes);
  const { issueToken } = options;
  const selectors = createSelectorRoom();
  const context = { store, cache, resources, timers, log, services, room, selectors, randomBytes, issueToken };
  return { ...createBackend(context), revision: () => store.revision(), close: () => cache.close() };
}

/** Every verb is an async function, so that every error rejects its promise. */
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
