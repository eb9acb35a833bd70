/** The local copy of an informer. Each change is made in the objects and in all indexes before the first handler is called. */
import type { KubeObject } from '../machinery/meta.ts';
import type { Log } from '../platform/platform.ts';

/** Handlers must not modify the objects, because the local copy contains the same objects. */
export interface InformerHandlers<T extends KubeObject> {
  added?(object: T): void;
  updated?(object: T, old: T): void;
  /** Called with the last known state of the object. */
  deleted?(object: T): void;
}

/** Returns the keys of an object in an index, such as the name of its node. The keys must depend on the object only. */
export type KeysOf<T extends KubeObject> = (object: T) => readonly string[];

const nameOf = (object: KubeObject): string => `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
const NONE: ReadonlySet<never> = new Set<never>();

export class LocalCopy<T extends KubeObject> {
  readonly #resource: string;
  readonly #log: Log;
  /** By `<namespace>/<name>`. */
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<KeysOf<T>, Map<string, Set<T>>>();
  readonly #followers = new Map<InformerHandlers<T>, (object: T) => boolean>();
  #revision = 0;
  readonly #waiters = new Set<{ isMet: () => boolean; resolve: () => void }>();
  #hasEnded = false;

  constructor(resource: string, log: Log) {
    this.#resource = resource;
    this.#log = log;
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#objects.get(`${namespace ?? ''}/${name}`);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  by(keysOf: KeysOf<T>, key: string): ReadonlySet<T> {
    let index = this.#indexes.get(keysOf);
    if (index === undefined) {
      index = new Map();
      this.#indexes.set(keysOf, index);
      for (const object of this.#objects.values()) addTo(index, keysOf, object);
    }
    return index.get(key) ?? NONE;
  }

  /**
   * Calls `added` for every object that matches, and from then on the handlers for each change of a matching object, until unfollow(). An
   * object that begins or ceases to match counts as added or deleted.
   */
  follow(handlers: InformerHandlers<T>, matches: (object: T) => boolean = () => true): void {
    for (const object of this.#objects.values()) if (matches(object)) this.#call(() => handlers.added?.(object));
    this.#followers.set(handlers, matches);
  }

  unfollow(handlers: InformerHandlers<T>): void {
    this.#followers.delete(handlers);
  }

  put(object: T): void {
    const name = nameOf(object);
    const old = this.#objects.get(name);
    if (old !== undefined && old.metadata.uid !== object.metadata.uid) this.remove(old);
    else if (old !== undefined && old.metadata.resourceVersion === object.metadata.resourceVersion) return;
    const known = this.#objects.get(name);
    this.#objects.set(name, object);
    for (const [keysOf, index] of this.#indexes) {
      if (known !== undefined) removeFrom(index, keysOf, known);
      addTo(index, keysOf, object);
    }
    this.#notify(known, object, true);
  }

  /** `object`: the last known state, which may be newer than the state in the copy. */
  remove(object: T): void {
    const name = nameOf(object);
    const known = this.#objects.get(name);
    if (known === undefined) return;
    this.#objects.delete(name);
    for (const [keysOf, index] of this.#indexes) removeFrom(index, keysOf, known);
    this.#notify(known, object, false);
  }

  replace(items: readonly T[]): void {
    const present = new Set(items.map(nameOf));
    for (const [name, object] of [...this.#objects]) if (!present.has(name)) this.remove(object);
    for (const item of items) this.put(item);
  }

  advance(resourceVersion: string | undefined): void {
    this.#revision = Number(resourceVersion ?? 0);
    if (this.#waiters.size > 0) this.#resolveWaiters();
  }

  /** Resolves all waits. Call this when the copy gets no further changes. */
  end(): void {
    this.#hasEnded = true;
    this.#resolveWaiters();
  }

  reached(resourceVersion: string | undefined): Promise<void> {
    const revision = Number(resourceVersion ?? 0);
    return this.#wait(() => this.#revision >= revision);
  }

  gone(object: T): Promise<void> {
    const { namespace, name, uid } = object.metadata;
    return this.#wait(() => {
      const known = this.get(namespace, name)?.metadata;
      return known === undefined || known.uid !== uid || known.deletionTimestamp !== undefined;
    });
  }

  #wait(isMet: () => boolean): Promise<void> {
    if (this.#hasEnded || isMet()) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.add({ isMet, resolve }));
  }

  #resolveWaiters(): void {
    for (const waiter of [...this.#waiters]) {
      if (!this.#hasEnded && !waiter.isMet()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  #notify(old: T | undefined, object: T, exists: boolean): void {
    // Iterate over a copy: if a handler calls follow(), follow() itself calls the new follower's `added` for this object.
    for (const [handlers, matches] of [...this.#followers]) {
      if (!this.#followers.has(handlers)) continue;
      const was = old !== undefined && matches(old);
      const is = exists && matches(object);
      this.#call(() => {
        if (was && is) handlers.updated?.(object, old);
        else if (is) handlers.added?.(object);
        else if (was) handlers.deleted?.(exists ? old : object);
      });
    }
  }

  #call(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#log.error('informer: a handler failed', { resource: this.#resource, error: (error as Error).stack });
    }
  }
}

function addTo<T extends KubeObject>(index: Map<string, Set<T>>, keysOf: KeysOf<T>, object: T): void {
  for (const key of keysOf(object)) {
    const objects = index.get(key);
    if (objects === undefined) index.set(key, new Set([object]));
    else objects.add(object);
  }
}

function removeFrom<T extends KubeObject>(index: Map<string, Set<T>>, keysOf: KeysOf<T>, object: T): void {
  for (const key of keysOf(object)) {
    const objects = index.get(key);
    objects?.delete(object);
    if (objects?.size === 0) index.delete(key);
  }
}
