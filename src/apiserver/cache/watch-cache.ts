/**
 * The watch cache: the current objects of each cached resource, and a window of past events for each resource. Lists at an older revision,
 * later pages of lists, and reads of uncached resources need the store.
 *
 * Boundary: the cache knows keys and metadata, but not kinds. The objects that it returns are frozen and shared.
 *
 * Invariants:
 *  1. The cache contains exactly the writes up to its revision. An acknowledged write may be newer, because the store calls its listeners
 *     later. A reader that must see a write waits until the cache has reached the revision of the write.
 *  2. A subscriber gets each event after the revision at which it subscribed exactly once and in revision order, even if a listener writes
 *     to the store.
 *  3. The window of a resource has only the newest events. Subscribing at a revision before the window throws TooOldError.
 */
import type { KubeObject } from '../../machinery/meta.ts';
import type { Log } from '../../platform/platform.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import type { Store, StoreEvent } from '../../store/store.ts';
import { WindowBudget } from './event-window.ts';
import type { FieldValue } from './field-index.ts';
import { type KeyParts, parseKey, prefixOf, REGISTRY_PREFIX } from './keys.ts';
import { ResourceCache } from './resource-cache.ts';
import { atRevision, decodeStored, objectBytes } from './stored-object.ts';

const WINDOW_EVENTS = 1000;
const UNCACHED_WINDOW_EVENTS = 100;
const LOAD_CHUNK = 1000;
/** A prefix followed by this character sorts after all keys with the prefix, because '~' sorts after all characters of namespaces. */
const END_OF_PREFIX = '~';

export interface CacheEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** '' for cluster-scoped kinds. */
  namespace: string;
  revision: number;
  /** The object after the change. For a deletion: the last state, with the revision of the deletion as resourceVersion. */
  object: KubeObject;
  /** The object before the change, with its own resourceVersion; undefined if the object was added. */
  previous: KubeObject | undefined;
}

export class TooOldError extends Error {
  override readonly name = 'TooOldError';
  readonly oldestRevision: number;
  constructor(requested: number, oldestRevision: number) {
    super(`too old resource version: ${requested} (${oldestRevision})`);
    this.oldestRevision = oldestRevision;
  }
}

export interface WatchCache {
  revision(): number;
  get(key: string): KubeObject | undefined;
  /**
   * Returns the objects of a resource in key order, of all namespaces if `namespace` is undefined. `where` omits the objects that do not
   * have this value. Returns an empty list for uncached resources. Throws an UnreadableValueError like ResourceCache.list().
   */
  list(prefix: string, namespace?: string, where?: FieldValue): KubeObject[];
  /**
   * Calls the listener synchronously with the events in the window after `afterRevision`, then with each new event. `where` omits new
   * events of objects that have this value neither before nor after the change. Returns a function that ends the subscription. Throws
   * TooOldError if the window lacks some of the past events.
   */
  subscribe(
    prefix: string,
    namespace: string | undefined,
    afterRevision: number,
    listener: (event: CacheEvent) => void,
    where?: FieldValue,
  ): () => void;
  /** Returns the approximate memory in bytes of the cached object with the key, or of all cached objects if `key` is undefined. */
  heldBytes(key?: string): number;
  /** Calls the listener when the revision has changed, after all subscribers. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void;
  /**
   * Calls the listener with each object that an update or deletion removes from the cache, and with the key prefix of the resource. Returns
   * a function that removes the listener.
   */
  onDrop(listener: DropListener): () => void;
  close(): void;
}

type DropListener = (prefix: string, object: KubeObject) => void;

export interface WatchCacheOptions {
  store: Store;
  log: Log;
  /** The maximum number of past events kept for each resource. For uncached resources, UNCACHED_WINDOW_EVENTS applies if it is lower. */
  windowEvents?: number;
  /** The key prefixes of the resources whose objects are not cached; none by default. */
  uncached?: ReadonlySet<string>;
}

const bytesOf = (object: KubeObject | undefined): number => (object === undefined ? 0 : objectBytes(object));

class StoreCache implements WatchCache {
  readonly #windowEvents: number;
  readonly #uncached: ReadonlySet<string>;
  readonly #log: Log;
  readonly #resources = new Map<string, ResourceCache>();
  readonly #changeListeners = new Set<() => void>();
  readonly #dropListeners = new Set<DropListener>();
  readonly #windows = new WindowBudget();
  #heldBytes = 0;
  readonly #queue: { resource: ResourceCache; event: CacheEvent }[] = [];
  readonly #loadedRevision: number;
  #dispatching = false;
  #revision: number;
  #endWatch: () => void = () => {};

  constructor(options: WatchCacheOptions, revision: number) {
    this.#windowEvents = options.windowEvents ?? WINDOW_EVENTS;
    this.#uncached = options.uncached ?? new Set();
    this.#log = options.log;
    this.#revision = revision;
    this.#loadedRevision = revision;
  }

  static async load(options: WatchCacheOptions): Promise<StoreCache> {
    const revision = options.store.revision();
    const cache = new StoreCache(options, revision);
    const betweenSteps = workInTurns();
    let after: string | undefined;
    const range = { prefix: REGISTRY_PREFIX, limit: LOAD_CHUNK, remainingAsFlag: true, revision };
    for (let remaining = 1; remaining > 0; ) {
      const page = await options.store.range({ ...range, after });
      remaining = page.remaining;
      for (const stored of page.items) {
        const parts = parseKey(stored.key);
        after = stored.key;
        if (parts === undefined) continue;
        if (cache.#uncached.has(parts.prefix)) {
          after = parts.prefix + END_OF_PREFIX;
          remaining = 1;
          break;
        }
        const object = decodeStored(stored);
        cache.#resource(parts.prefix).objects.set(stored.key, parts, object);
        cache.#heldBytes += objectBytes(object);
        await betweenSteps();
      }
    }
    // Watch all keys, so that the cache also reaches revisions that write only keys outside of /registry/.
    cache.#endWatch = options.store.watch('', revision, (events) => cache.#apply(events));
    return cache;
  }

  revision(): number {
    return this.#revision;
  }

  get(key: string): KubeObject | undefined {
    return this.#resources.get(prefixOf(key))?.get(key);
  }

  list(prefix: string, namespace?: string, where?: FieldValue): KubeObject[] {
    return this.#resources.get(prefix)?.list(namespace, where) ?? [];
  }

  subscribe(
    prefix: string,
    namespace: string | undefined,
    afterRevision: number,
    listener: (event: CacheEvent) => void,
    where?: FieldValue,
  ): () => void {
    const resource = this.#resource(prefix);
    let replayed = afterRevision;
    for (;;) {
      const missed = resource.window.after(replayed);
      if (missed === undefined) throw new TooOldError(replayed, resource.window.oldestRevision);
      // The listener may have written to the store: replay the resulting events too.
      if (missed.length === 0) break;
      for (const event of missed) {
        if (namespace === undefined || event.namespace === namespace) this.#call(listener, event);
      }
      replayed = (missed.at(-1) as CacheEvent).revision;
    }
    // Skip the events that still wait for dispatch: they were replayed above.
    return resource.add({ namespace, where, afterRevision: Math.max(replayed, this.#revision), listener });
  }

  heldBytes(key?: string): number {
    if (key === undefined) return this.#heldBytes;
    return bytesOf(this.#resources.get(prefixOf(key))?.objects.get(key));
  }

  onChange(listener: () => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  onDrop(listener: DropListener): () => void {
    this.#dropListeners.add(listener);
    return () => this.#dropListeners.delete(listener);
  }

  close(): void {
    this.#endWatch();
  }

  #resource(prefix: string): ResourceCache {
    let resource = this.#resources.get(prefix);
    if (resource === undefined) {
      const events = this.#uncached.has(prefix) ? UNCACHED_WINDOW_EVENTS : this.#windowEvents;
      resource = new ResourceCache(prefix, Math.min(events, this.#windowEvents), this.#loadedRevision, this.#windows);
      this.#resources.set(prefix, resource);
    }
    return resource;
  }

  /**
   * Applies the whole batch before a subscriber gets an event. The queue keeps the order of the events even if a subscriber writes to the
   * store.
   */
  #apply(events: StoreEvent[]): void {
    for (const event of events) {
      const key = event.type === 'put' ? event.kv.key : event.key;
      this.#revision = Math.max(this.#revision, event.type === 'put' ? event.kv.modRevision : event.revision);
      const parts = parseKey(key);
      if (parts === undefined) continue;
      const failure = this.#resource(parts.prefix).whenReadable(key, () => this.#applyOne(event, key, parts));
      if (failure !== undefined) this.#log.warn('an object cannot be read', { error: failure.message });
    }
    this.#dispatch();
  }

  #applyOne(change: StoreEvent, key: string, parts: KeyParts): void {
    const resource = this.#resource(parts.prefix);
    const { namespace } = parts;
    const isCached = !this.#uncached.has(parts.prefix);
    const before = isCached || change.previous === undefined ? undefined : decodeStored(change.previous);
    let event: CacheEvent;
    if (change.type === 'put') {
      const object = decodeStored(change.kv);
      const previous = isCached ? resource.objects.set(key, parts, object) : before;
      if (isCached) this.#heldBytes += objectBytes(object) - bytesOf(previous);
      const type = previous === undefined ? 'ADDED' : 'MODIFIED';
      event = { type, namespace, revision: change.kv.modRevision, object, previous };
    } else {
      const previous = isCached ? resource.objects.delete(key, parts) : before;
      if (previous === undefined) return;
      if (isCached) this.#heldBytes -= objectBytes(previous);
      const { revision } = change;
      event = { type: 'DELETED', namespace, revision, object: atRevision(previous, revision), previous };
    }
    const held = event.type === 'DELETED' ? (event.previous ?? event.object) : event.object;
    resource.window.push(event, objectBytes(held));
    if (isCached && event.previous !== undefined) {
      for (const listener of this.#dropListeners) listener(parts.prefix, event.previous);
    }
    this.#queue.push({ resource, event });
  }

  #dispatch(): void {
    if (this.#dispatching) return;
    this.#dispatching = true;
    for (let item = this.#queue.shift(); item !== undefined; item = this.#queue.shift()) {
      for (const subscriber of item.resource.subscribersOf(item.event)) {
        if (item.event.revision > subscriber.afterRevision) this.#call(subscriber.listener, item.event);
      }
    }
    this.#dispatching = false;
    for (const listener of this.#changeListeners) listener();
  }

  /** An exception of the listener must not keep the event from the other listeners. */
  #call(listener: (event: CacheEvent) => void, event: CacheEvent): void {
    try {
      listener(event);
    } catch (error) {
      this.#log.error('watch listener failed', { error: String(error), resourceVersion: event.revision });
    }
  }
}

/** Resolves when the cache contains all objects of the cached resources. Until close(), the cache follows the changes of the store. */
export const loadWatchCache = (options: WatchCacheOptions): Promise<WatchCache> => StoreCache.load(options);
