/**
 * Keeps a local copy of a resource up to date by list and watch, and calls handlers for each change.
 *
 * Invariants:
 *  1. The handlers for one object are called in the order of its changes: `added` first, `deleted` last.
 *  2. After each later list, the handlers are called for the difference: `deleted` with the last known state for each deleted object, and
 *     `deleted` and then `added` for each replaced object.
 *  3. get(), list() and by() return the new state before the handlers are called.
 *
 * Source: client-go's reflector and shared informer (behavior).
 */

import type { KubeList, KubeObject, Status } from '../machinery/meta.ts';
import { ApiError, isApiError } from '../machinery/status.ts';
import { pause } from '../platform/pause.ts';
import type { Log, Timers } from '../platform/platform.ts';
import type { ListOptions, WatchEvent } from '../ports/backend.ts';
import { backOffMillis } from './back-off.ts';
import type { ResourceClient } from './client.ts';
import { type InformerHandlers, type KeysOf, LocalCopy } from './local-copy.ts';

const BACKOFF_BASE_MILLIS = 100;
const BACKOFF_MAX_MILLIS = 30_000;

export interface InformerOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Lists in pages of this many objects; undefined: the whole list in one call. */
  pageSize?: number;
  log: Log;
  timers: Timers;
  signal: AbortSignal;
  /** Called with the error of each list or watch that fails. The informer tries again. */
  failed?(error: unknown): void;
}

export interface Informer<T extends KubeObject> {
  /** Resolves once the handlers have been called for every object of the first list, or once the informer has stopped. */
  readonly synced: Promise<void>;
  get(namespace: string | undefined, name: string): T | undefined;
  list(): T[];
  /**
   * Returns the objects for which `keysOf` returns the key, from an index that the first call with `keysOf` creates: pass the same function
   * each time. Later changes may modify the set.
   */
  by(keysOf: KeysOf<T>, key: string): ReadonlySet<T>;
  /**
   * Resolves once the local copy contains all changes of the resource up to the revision, or once the informer has stopped. A controller
   * that waits for the resourceVersion of the object that it has written reads its own write afterwards.
   */
  reached(resourceVersion: string | undefined): Promise<void>;
  /** Resolves once the local copy shows that the object is being deleted or no longer exists, or once the informer has stopped. */
  gone(object: T): Promise<void>;
}

export const readsOf = <T extends KubeObject>(copy: LocalCopy<T>): Omit<Informer<T>, 'synced'> => ({
  get: (namespace, name) => copy.get(namespace, name),
  list: () => copy.list(),
  by: (keysOf, key) => copy.by(keysOf, key),
  reached: (resourceVersion) => copy.reached(resourceVersion),
  gone: (object) => copy.gone(object),
});

const isExpired = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 410 || error.reason === 'Expired' || error.reason === 'Gone');

export function createInformer<T extends KubeObject>(
  client: ResourceClient<T>,
  options: InformerOptions,
  handlers: InformerHandlers<T>,
): Informer<T>;
/** Creates an informer that stores `transform(object)` in place of each received object. The result must keep the metadata. */
export function createInformer<From extends KubeObject, T extends KubeObject>(
  client: ResourceClient<From>,
  options: InformerOptions,
  handlers: InformerHandlers<T>,
  transform: (object: From) => T,
): Informer<T>;
export function createInformer<From extends KubeObject, T extends KubeObject>(
  client: ResourceClient<From>,
  options: InformerOptions,
  handlers: InformerHandlers<T>,
  transform: (object: From) => T = (object) => object as unknown as T,
): Informer<T> {
  const copy = new LocalCopy<T>(client.ref.resource, options.log);
  copy.follow(handlers);
  const synced = keepCurrent(client, options, copy, transform);
  return { synced, ...readsOf(copy) };
}

/**
 * Keeps the copy up to date until the signal of the options aborts. Resolves once the copy contains every object of the first list, or once
 * the signal has aborted.
 */
export function keepCurrent<From extends KubeObject, T extends KubeObject>(
  client: ResourceClient<From>,
  options: InformerOptions,
  copy: LocalCopy<T>,
  transform: (object: From) => T,
): Promise<void> {
  const reflector = new Reflector(client, options, copy, transform);
  void reflector.run();
  return reflector.synced;
}

class Reflector<From extends KubeObject, T extends KubeObject> {
  readonly #client: ResourceClient<From>;
  readonly #options: InformerOptions;
  readonly #copy: LocalCopy<T>;
  readonly #transform: (object: From) => T;
  readonly #selection: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>;
  readonly #synced = Promise.withResolvers<void>();
  /** The revision to watch from; undefined if the informer must list first. */
  #resourceVersion: string | undefined;
  #failures = 0;

  constructor(
    client: ResourceClient<From>,
    options: InformerOptions,
    copy: LocalCopy<T>,
    transform: (object: From) => T,
  ) {
    const { namespace, labelSelector, fieldSelector } = options;
    this.#client = client;
    this.#options = options;
    this.#copy = copy;
    this.#transform = transform;
    this.#selection = { namespace, labelSelector, fieldSelector };
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  async run(): Promise<void> {
    const { timers, signal } = this.#options;
    while (!signal.aborted) {
      const startedAt = timers.now();
      try {
        await this.#follow();
        // A short watch counts as a failure, so that the informer backs off if the server ends every watch immediately.
        this.#failures = timers.now() - startedAt < BACKOFF_BASE_MILLIS ? this.#failures + 1 : 0;
      } catch (error) {
        if (isExpired(error)) this.#resourceVersion = undefined;
        this.#failures++;
        this.#logFailure(error as Error);
        this.#options.failed?.(error);
      }
      // After a single failure, the informer does not pause before a list, which is the next step after 410 Gone.
      if (this.#failures > 1 || (this.#failures === 1 && this.#resourceVersion !== undefined)) {
        await pause(timers, backOffMillis(this.#failures, BACKOFF_BASE_MILLIS, BACKOFF_MAX_MILLIS), signal);
      }
    }
    this.#synced.resolve();
    this.#copy.end();
  }

  async #follow(): Promise<void> {
    if (this.#resourceVersion === undefined) {
      const { pageSize, signal } = this.#options;
      const list = await listAll(this.#client, { ...this.#selection, limit: pageSize }, this.#transform);
      if (signal.aborted) return;
      this.#copy.replace(list.items);
      this.#advance(list.resourceVersion);
      this.#synced.resolve();
    }
    await this.#watch();
  }

  async #watch(): Promise<void> {
    // An ERROR event ends the watch, and its error is thrown afterwards. If `sink` threw the error, the error would reach the code that
    // delivers the events.
    const ended = new AbortController();
    let failure: unknown;
    const sink = (event: WatchEvent<From>): void => {
      if (ended.signal.aborted) return;
      try {
        this.#apply(event);
      } catch (error) {
        failure = error;
        ended.abort();
      }
    };
    const watching = { ...this.#selection, resourceVersion: this.#resourceVersion, allowWatchBookmarks: true };
    await this.#client.watch(watching, sink, AbortSignal.any([this.#options.signal, ended.signal]));
    if (failure !== undefined) throw failure;
  }

  #apply(event: WatchEvent<From>): void {
    if (event.type === 'ERROR') throw new ApiError(event.object as Status);
    this.#failures = 0;
    if (event.type === 'DELETED') this.#copy.remove(this.#transform(event.object));
    else if (event.type !== 'BOOKMARK') this.#copy.put(this.#transform(event.object));
    this.#advance(event.object.metadata.resourceVersion);
  }

  #advance(resourceVersion: string | undefined): void {
    this.#resourceVersion = resourceVersion;
    this.#copy.advance(resourceVersion);
  }

  #logFailure(error: Error): void {
    const level = isExpired(error) || isApiError(error, 'ServiceUnavailable') ? 'debug' : 'warn';
    const fields = { resource: this.#client.ref.resource, error: error.message };
    this.#options.log[level]('informer: list or watch failed', fields);
  }
}

/**
 * Resolves to all objects, read in pages if the query has a limit, and to the resourceVersion of the first page; undefined if the server
 * reports none.
 */
async function listAll<From extends KubeObject, T>(
  client: ResourceClient<From>,
  query: ListOptions,
  transform: (object: From) => T,
): Promise<{ items: T[]; resourceVersion: string | undefined }> {
  const items: T[] = [];
  let page = await client.list(query);
  const { resourceVersion } = page.metadata;
  for (;;) {
    for (const item of page.items) items.push(transform(withKind(item, page)));
    if (!page.metadata.continue) return { items, resourceVersion };
    page = await client.list({ ...query, continue: page.metadata.continue });
  }
}

/** Adds the kind and apiVersion, which an API server may omit from the items of a list. */
function withKind<T extends KubeObject>(item: T, list: KubeList<T>): T {
  if (item.kind) return item;
  return { ...item, kind: list.kind.replace(/List$/, ''), apiVersion: list.apiVersion };
}
