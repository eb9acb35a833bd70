/**
 * The verbs get and list. The newest state is read from the cache. Later pages, older revisions and uncached kinds are read from the store.
 * All pages of a list have the revision of the first page, so that they are consistent, unless the client continues with the token of a 410
 * error.
 */

import type { KubeList, KubeObject, ListMeta } from '../../../machinery/meta.ts';
import { ApiError, badRequest, expired, methodNotAllowed, notFound } from '../../../machinery/status.ts';
import { runInTurns, workInTurns } from '../../../platform/work-in-turns.ts';
import type { ListOptions } from '../../../ports/backend.ts';
import { CompactedError } from '../../../store/store.ts';
import { objectKey } from '../../cache/keys.ts';
import { decodeStored, revisionOf } from '../../cache/stored-object.ts';
import type { RegistryContext } from '../context.ts';
import type { Resource } from '../resources.ts';
import { decodeContinue, encodeContinue, NEWEST_REVISION } from './continue-token.ts';
import { untilCurrent, untilFresh, untilRevision } from './freshness.ts';
import { checkListOptions, isExact, parseResourceVersion } from './resource-version.ts';
import { parseSelection, type Selection } from './selection.ts';

const EXPIRED_TEXT = 'The resourceVersion for the provided list is too old.';
const EXPIRED_CONTINUE_TEXT =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.';

/**
 * The maximum number of objects in one read from the store. The number is large because each read of an older revision makes the store read
 * its history since that revision.
 */
const CHUNK = 2000;

const SELECTED_AT_ONCE = 100;

/** Throws 400 if the resource is namespaced and the namespace is missing. */
export function keyOf(resource: Resource, namespace: string | undefined, name: string): string {
  if (!resource.kind.namespaced) return objectKey(resource.prefix, undefined, name);
  if (!namespace) throw badRequest('an empty namespace may not be set when a resource name is provided');
  return objectKey(resource.prefix, namespace, name);
}

/**
 * Resolves to the current object in its stored form; undefined if the object does not exist. The result contains each write that had
 * resolved before the call. Falls back to the store if the cache does not reach the newest revision in time: a delay of the cache must not
 * invalidate a token that is bound to the object. Source: upstream reads the object from etcd.
 */
export async function readCurrent(
  context: RegistryContext,
  { kind }: Resource,
  key: string,
): Promise<KubeObject | undefined> {
  const { store, cache } = context;
  if (kind.uncached !== true) {
    const behind = untilCurrent(context);
    if (behind === undefined || (await reached(behind))) return cache.get(key);
  }
  const stored = await store.get(key);
  return stored === undefined ? undefined : decodeStored(stored);
}

const reached = (behind: Promise<void>): Promise<boolean> =>
  behind.then(
    () => true,
    () => false,
  );

export async function getObject(
  context: RegistryContext,
  resource: Resource,
  namespace: string | undefined,
  name: string,
): Promise<KubeObject> {
  if (resource.kind.createOnly) throw methodNotAllowed();
  const object = await readCurrent(context, resource, keyOf(resource, namespace, name));
  if (object === undefined) throw notFound(resource.groupResource, name);
  return resource.fromStored(object);
}

interface Page {
  items: KubeObject[];
  revision: number;
  /** The position of the last object that was examined (see ContinuePoint); undefined if no objects remain. */
  last?: string;
  /** The number of objects after `last`, before any selector is applied; undefined if no objects remain. */
  remaining?: number;
}

export async function listObjects(
  context: RegistryContext,
  resource: Resource,
  options: ListOptions,
  signal?: AbortSignal,
): Promise<KubeList> {
  if (resource.kind.createOnly) throw methodNotAllowed();
  checkListOptions(options);
  const selection = parseSelection(resource.kind, options);
  const page = await readPage(context, resource, selection, options, signal);
  const metadata: ListMeta = { resourceVersion: String(page.revision) };
  if (page.last !== undefined) {
    metadata.continue = encodeContinue({ revision: page.revision, after: page.last });
    if (selection.matches === undefined && page.remaining !== undefined) metadata.remainingItemCount = page.remaining;
  }
  return { apiVersion: resource.apiVersion, kind: `${resource.kind.kind}List`, metadata, items: page.items };
}

async function readPage(
  context: RegistryContext,
  resource: Resource,
  selection: Selection,
  options: ListOptions,
  signal: AbortSignal | undefined,
): Promise<Page> {
  const namespace = resource.kind.namespaced ? options.namespace || selection.namespace : undefined;
  const from = { namespace, selection, limit: options.limit ?? 0, signal };
  if (options.continue) {
    if (options.resourceVersion && options.resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue');
    }
    const { revision, after } = decodeContinue(options.continue);
    const at = revision === NEWEST_REVISION ? context.store.revision() : revision;
    const behind = untilRevision(context, at);
    if (behind !== undefined) await behind;
    return readStored(context, resource, { ...from, revision: at, after });
  }
  const revision = parseResourceVersion(options.resourceVersion);
  const behind = untilFresh(context, options.resourceVersion);
  if (behind !== undefined) await behind;
  if (isExact(options) && revision !== 0 && revision !== context.cache.revision()) {
    return readStored(context, resource, { ...from, revision });
  }
  if (resource.kind.uncached === true) return readUncached(context, resource, from);
  return runInTurns(cachedPage(context, resource, from), workInTurns());
}

async function readUncached(context: RegistryContext, resource: Resource, request: PageRequest): Promise<Page> {
  const revision = context.cache.revision();
  const { namespace, selection } = request;
  if (!selection.name || (resource.kind.namespaced && !namespace))
    return readStored(context, resource, { ...request, revision });
  const object = await readCurrent(context, resource, keyOf(resource, namespace, selection.name));
  const served = object === undefined ? [] : [resource.fromStored(object)];
  return { items: served.filter((each) => selection.matches?.(each) ?? true), revision };
}

interface PageRequest {
  namespace: string | undefined;
  selection: Selection;
  /** 0 means no limit. */
  limit: number;
  signal?: AbortSignal | undefined;
}

/** Returns the position of an object (see ContinuePoint), such as `default/web-1`, or `node-1` if the kind is cluster-scoped. */
const positionOf = (object: KubeObject): string =>
  object.metadata.namespace ? `${object.metadata.namespace}/${object.metadata.name}` : object.metadata.name;

/** Reads the current objects of a cached kind from the cache. Yields only while it applies a selector to many objects. */
export function* cachedPage(
  { cache }: RegistryContext,
  resource: Resource,
  { namespace, selection, limit }: PageRequest,
): Generator<void, Page> {
  const revision = cache.revision();
  const serve = (object: KubeObject): KubeObject[] => {
    const served = resource.fromStored(object);
    return selection.matches === undefined || selection.matches(served) ? [served] : [];
  };
  if (selection.name && (namespace || !resource.kind.namespaced)) {
    const object = cache.get(objectKey(resource.prefix, namespace, selection.name));
    return { items: object === undefined ? [] : serve(object), revision };
  }
  const all = cache.list(resource.prefix, namespace, selection.indexed);
  const items: KubeObject[] = [];
  for (const [index, object] of all.entries()) {
    if (selection.matches !== undefined && index % SELECTED_AT_ONCE === SELECTED_AT_ONCE - 1) yield;
    if (limit > 0 && items.length === limit) {
      return { items, revision, last: positionOf(all[index - 1] as KubeObject), remaining: all.length - index };
    }
    items.push(...serve(object));
  }
  return { items, revision };
}

async function readStored(
  context: RegistryContext,
  resource: Resource,
  request: PageRequest & { revision: number; after?: string },
): Promise<Page> {
  const { namespace, selection, limit, revision, signal } = request;
  const prefix = namespace ? objectKey(resource.prefix, namespace, '') : resource.prefix;
  const items: KubeObject[] = [];
  const betweenSteps = workInTurns();
  let after = request.after;
  for (;;) {
    const isPage = limit > 0 && selection.matches === undefined;
    const wanted = isPage ? Math.min(CHUNK, limit - items.length) : CHUNK;
    const afterKey = after === undefined ? undefined : `${resource.prefix}${after}`;
    const range = await context.store
      .range({ prefix, after: afterKey, limit: wanted, revision, signal })
      .catch((error: unknown) => Promise.reject(explainRange(error, request.after)));
    for (const [index, stored] of range.items.entries()) {
      after = stored.key.slice(resource.prefix.length);
      // The cache has already decoded most of these objects, and may have encoded them for other readers.
      const cached = context.cache.get(stored.key);
      const object = cached !== undefined && revisionOf(cached) === stored.modRevision ? cached : decodeStored(stored);
      const served = resource.fromStored(object);
      if (selection.matches === undefined || selection.matches(served)) items.push(served);
      if (await betweenSteps()) signal?.throwIfAborted();
      const remaining = range.remaining + range.items.length - index - 1;
      if (limit > 0 && items.length === limit && remaining > 0) return { items, revision, last: after, remaining };
    }
    if (range.remaining === 0) return { items, revision };
    // The store returned fewer objects than requested, because they are large. The page ends here.
    if (isPage && range.items.length < wanted) return { items, revision, last: after, remaining: range.remaining };
  }
}

function explainRange(error: unknown, after: string | undefined): unknown {
  if (!(error instanceof CompactedError)) return error;
  if (after === undefined) return expired(EXPIRED_TEXT);
  const { status } = expired(EXPIRED_CONTINUE_TEXT);
  return new ApiError({ ...status, metadata: { continue: encodeContinue({ revision: NEWEST_REVISION, after }) } });
}
