/** The part of the watch cache that belongs to one resource. */
import { EventWindow, type WindowBudget } from './event-window.ts';
import { ObjectIndex } from './object-index.ts';
import type { CacheEvent } from './watch-cache.ts';

export interface Subscriber {
  afterRevision: number;
  listener: (event: CacheEvent) => void;
}

/** The objects, the event window and the subscribers of one resource. Each subscriber follows one namespace or all namespaces. */
export class ResourceCache {
  readonly objects: ObjectIndex;
  readonly window: EventWindow;
  readonly #everywhere = new Set<Subscriber>();
  readonly #byNamespace = new Map<string, Set<Subscriber>>();

  constructor(prefix: string, windowEvents: number, revision: number, budget: WindowBudget) {
    this.objects = new ObjectIndex(prefix);
    this.window = new EventWindow(windowEvents, revision, budget);
  }

  /** Adds a subscriber to one namespace, or to all if `namespace` is undefined. Returns a function that removes the subscriber. */
  add(namespace: string | undefined, subscriber: Subscriber): () => void {
    if (namespace === undefined) {
      this.#everywhere.add(subscriber);
      return () => this.#everywhere.delete(subscriber);
    }
    const inNamespace = this.#byNamespace.get(namespace) ?? new Set();
    this.#byNamespace.set(namespace, inNamespace.add(subscriber));
    return () => {
      inNamespace.delete(subscriber);
      if (inNamespace.size === 0 && this.#byNamespace.get(namespace) === inNamespace) {
        this.#byNamespace.delete(namespace);
      }
    };
  }

  *subscribersOf(event: CacheEvent): Iterable<Subscriber> {
    yield* this.#everywhere;
    yield* this.#byNamespace.get(event.namespace) ?? [];
  }
}
