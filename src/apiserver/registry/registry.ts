/**
 * The registry implements the resource verbs of the API, on top of a store, for any kinds except computed ones.
 *
 * Boundary: no HTTP, and no authorization of requests. The behavior that is specific to a kind comes from its definition, except for steps
 * that need other objects: admission plugins, evictions and tokens.
 *
 * Invariants:
 *  1. Current objects are read from the watch cache, once it contains every acknowledged write (reads/freshness.ts). Objects of uncached
 *     kinds, older revisions and later pages of lists are read from the store.
 *  2. Every write is conditional on the revision that it is based on. After a conflict, the write starts over from the newest state, so no
 *     update is lost.
 *  3. Returned objects may be frozen and shared with other readers. Objects that are passed in are copied.
 *  4. A write with dryRun stores nothing. It makes the same checks, except for the size of the object, the memory of all objects
 *     (object-memory-limit.ts) and the space of the store.
 */
import { randomBytes as systemRandomBytes } from 'node:crypto';
import type { KindCatalog } from '../../api/catalog.ts';
import { badRequest, methodNotAllowed } from '../../machinery/status.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { createSerialByKey } from '../../platform/serial-by-key.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { RequestContext } from '../../ports/request.ts';
import type { Store } from '../../store/store.ts';
import { createAdmission } from '../admission/chain.ts';
import type { PluginFactory } from '../admission/plugin.ts';
import { admissionPlugins } from '../admission/plugins.ts';
import { privilegedOr } from '../auth/authorization/authorizer.ts';
import { loadWatchCache } from '../cache/watch-cache.ts';
import type { TokenIssuer } from '../pki/tokens.ts';
import { applyObject } from './apply.ts';
import type { RegistryContext } from './context.ts';
import { createObject } from './create.ts';
import { deleteObject, deleteObjects } from './delete.ts';
import { createObjectRoom } from './object-memory-limit.ts';
import { inBlocks } from './random-names.ts';
import { getObject, listObjects } from './reads/list.ts';
import { createSelectorRoom } from './reads/selector-limit.ts';
import { watchObjects } from './reads/watch.ts';
import { indexResources } from './resources.ts';
import { createForSubresource, createSubresource } from './subresource.ts';
import { patchObject, updateObject } from './update.ts';

export interface RegistryOptions {
  store: Store;
  catalog: KindCatalog;
  timers: Timers;
  log: Log;
  /** The range of the cluster IPs of Services, such as 10.96.0.0/16, or two ranges of different IP families with a comma between them. */
  serviceCidr: string;
  /** The default is the system's random number generator. */
  randomBytes?: (size: number) => Uint8Array;
  /**
   * The memory that all cached objects together may take before writes of clients are rejected, in bytes. The default is a quarter of V8's
   * maximum heap.
   */
  roomBytes?: number;
  /** The admission plugins in the order in which they are called. The default is admissionPlugins. */
  admission?: readonly PluginFactory[];
  /** If absent, requests for tokens of ServiceAccounts fail with 503. */
  issueToken?: TokenIssuer['issue'];
  /**
   * Decides for admission plugins what users may do, for example which roles they can grant. By default, only members of system:masters may
   * do anything.
   */
  authorizer?: Authorizer;
}

export interface Registry extends ResourceBackend {
  revision(): number;
  /** Ends the subscription to the store: running watches get no more changes. Does not close the store. */
  close(): void;
}

/** Loads all stored objects except those of uncached kinds. Rejects if the store cannot be read or the Service CIDR is invalid. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { store, timers, log, randomBytes = inBlocks(systemRandomBytes) } = options;
  const resources = indexResources(options.catalog);
  const cache = await loadWatchCache({ store, log, uncached: resources.uncached });
  const { serviceCidr, admission: factories = admissionPlugins } = options;
  const { authorizer = privilegedOr() } = options;
  const services = { cache, store, timers, randomBytes, serviceCidr, authorizer };
  const admission = createAdmission(factories.map((factory) => factory(services)));
  const room = createObjectRoom(() => cache.heldBytes(), options.roomBytes);
  const { issueToken } = options;
  const selectors = createSelectorRoom();
  const takingTurns = createSerialByKey().run;
  const shared = { store, cache, resources, timers, log, admission, room, selectors };
  const context = { ...shared, randomBytes, takingTurns, issueToken };
  return { ...createBackend(context), revision: () => store.revision(), close: () => cache.close() };
}

/** Every verb is an async function, so that every error rejects its promise. */
function createBackend(context: RegistryContext): ResourceBackend {
  const { resources } = context;
  return {
    async get(request) {
      const resource = resources.find(request.resource);
      const object = await getObject(context, resource, request.namespace, nameIn(request));
      return resource.kind.subresources[request.subresource ?? '']?.document?.read(object) ?? object;
    },
    async list(request, options) {
      return listObjects(context, resources.find(request.resource), within(request, options), request.signal);
    },
    async watch(request, options, sink) {
      return watchObjects(context, resources.find(request.resource), within(request, options), sink, request.signal);
    },
    async create(request, object, options) {
      const resource = resources.find(request.resource);
      const { namespace, name, subresource } = request;
      const sent = { ...options, request };
      if (subresource) return createSubresource(context, resource, { namespace, name, subresource }, object, sent);
      const { createOnly } = resource.kind;
      // The API server itself answers reviews.
      if (createOnly !== undefined && 'review' in createOnly) throw methodNotAllowed();
      if (createOnly !== undefined) return createForSubresource(context, createOnly, object, sent);
      return createObject(context, resource, namespace, object, sent);
    },
    async update(request, object, options) {
      return updateObject(context, resources.find(request.resource), object, { ...options, request });
    },
    async patch(request, type, body, options) {
      const resource = resources.find(request.resource);
      const at = { namespace: request.namespace, name: nameIn(request) };
      const sent = { ...options, request };
      return type === 'application/apply-patch+yaml'
        ? applyObject(context, resource, at, body, sent)
        : patchObject(context, resource, at, { type, body }, sent);
    },
    async delete(request, options) {
      const at = { namespace: request.namespace, name: nameIn(request) };
      return deleteObject(context, resources.find(request.resource), at, { ...options, request });
    },
    async deleteCollection(request, options) {
      return deleteObjects(context, resources.find(request.resource), { ...within(request, options), request });
    },
    onDrop(listener) {
      return context.cache.onDrop((prefix, object) => {
        for (const served of resources.served(prefix, object)) listener(served);
      });
    },
  };
}

const nameIn = ({ name }: RequestContext): string => {
  if (name === undefined) throw badRequest('name must be provided');
  return name;
};

const within = <T extends { namespace?: string }>({ namespace }: RequestContext, options: T): T =>
  namespace === undefined ? options : { ...options, namespace };
