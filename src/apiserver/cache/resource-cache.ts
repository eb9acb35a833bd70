import type { KubeObject } from '../../machinery/meta.ts';
import { UnreadableValueError } from '../encryption/encrypted-store.ts';
import { EventWindow, type WindowBudget } from './event-window.ts';
import type { FieldValue, IndexedField } from './field-index.ts';
import { parseKey } from './keys.ts';
import { ObjectIndex } from './object-index.ts';
import type { CacheEvent } from './watch-cache.ts';

export interface Subscriber {
  /** Undefined for all namespaces. */
  namespace: string | undefined;
  /** If present, the subscriber gets only the events of objects that have this value before or after the change. */
  where: FieldValue | undefined;
  afterRevision: number;
  listener: (event: CacheEvent) => void;
}

export class ResourceCache {
  readonly objects: ObjectIndex;
  /** The errors of the values that cannot be read, by key. `objects` keeps the last readable state of such an object, if there was one. */
  readonly #unreadable = new Map<string, UnreadableValueError>();
  readonly window: EventWindow;
  readonly #everywhere = new Set<Subscriber>();
  readonly #byNamespace = new Map<string, Set<Subscriber>>();
  readonly #byField = new Map<IndexedField, Map<string, Set<Subscriber>>>();

  constructor(prefix: string, windowEvents: number, revision: number, budget: WindowBudget) {
    this.objects = new ObjectIndex(prefix);
    this.window = new EventWindow(windowEvents, revision, budget);
  }

  /**
   * Calls `apply`, which applies a change of the object with the key. Returns the error if the new value cannot be read. Reads of the
   * object then fail with this error until the next change.
   */
  whenReadable(key: string, apply: () => void): UnreadableValueError | undefined {
    this.#unreadable.delete(key);
    try {
      apply();
      return undefined;
    } catch (error) {
      if (!(error instanceof UnreadableValueError)) throw error;
      this.#unreadable.set(key, error);
      return error;
    }
  }

  /** Throws an UnreadableValueError if the object's value cannot be read. */
  get(key: string): KubeObject | undefined {
    const failure = this.#unreadable.get(key);
    if (failure !== undefined) throw failure;
    return this.objects.get(key);
  }

  /** Throws an UnreadableValueError if a value in the namespace cannot be read, even if `where` does not select it. */
  list(namespace?: string, where?: FieldValue): KubeObject[] {
    for (const [key, failure] of this.#unreadable) {
      if (namespace === undefined || parseKey(key)?.namespace === namespace) throw failure;
    }
    return this.objects.list(namespace, where);
  }

  add(subscriber: Subscriber): () => void {
    const { namespace, where } = subscriber;
    if (where !== undefined) {
      const byValue = this.#byField.get(where.by) ?? new Map<string, Set<Subscriber>>();
      this.#byField.set(where.by, byValue);
      const remove = addTo(byValue, where.value, subscriber);
      return () => {
        remove();
        if (byValue.size === 0 && this.#byField.get(where.by) === byValue) this.#byField.delete(where.by);
      };
    }
    if (namespace !== undefined) return addTo(this.#byNamespace, namespace, subscriber);
    this.#everywhere.add(subscriber);
    return () => this.#everywhere.delete(subscriber);
  }

  *subscribersOf(event: CacheEvent): Iterable<Subscriber> {
    yield* this.#everywhere;
    yield* this.#byNamespace.get(event.namespace) ?? [];
    for (const [by, byValue] of this.#byField) {
      const values = new Set([event.object, event.previous ?? event.object].map((object) => by.valueOf(object)));
      for (const value of values) {
        for (const subscriber of byValue.get(value) ?? []) {
          if (subscriber.namespace === undefined || subscriber.namespace === event.namespace) yield subscriber;
        }
      }
    }
  }
}

function addTo(sets: Map<string, Set<Subscriber>>, key: string, subscriber: Subscriber): () => void {
  const set = sets.get(key) ?? new Set();
  sets.set(key, set.add(subscriber));
  return () => {
    set.delete(subscriber);
    if (set.size === 0 && sets.get(key) === set) sets.delete(key);
  };
}
