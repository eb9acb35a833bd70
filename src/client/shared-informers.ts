/**
 * The informers that the components of an engine share: one list, one watch and one copy of the objects for each resource. All informers
 * read with the same client, and thus with the rights of one user; each component writes with its own client.
 *
 * Invariants:
 *  1. A follower gets `added` for every existing object first, whenever it begins to follow.
 *  2. The objects are frozen with all their content, because all followers get the same ones.
 *  3. An informer ends with its last follower. The next follower of the resource starts a new informer.
 *
 * Source: client-go's SharedInformerFactory (behavior), whose informers, unlike these, do not end before the factory.
 */
import { deepFreeze } from '../machinery/deep-freeze.ts';
import { parseFieldSelector } from '../machinery/field-selector.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { onAbort } from '../platform/on-abort.ts';
import type { Log, Timers } from '../platform/platform.ts';
import type { Client } from './client.ts';
import { type Informer, keepCurrent, readsOf } from './informer.ts';
import { type InformerHandlers, LocalCopy } from './local-copy.ts';

export interface SharedInformersOptions {
  client: Client;
  timers: Timers;
  log: Log;
}

export interface FollowOptions {
  /**
   * A selector of the objects to follow, such as `spec.nodeName=n1`. Each field must be the path of a text in the objects. An object that
   * begins or ceases to match counts as added or deleted.
   */
  fieldSelector?: string;
  signal: AbortSignal;
}

export interface SharedInformers {
  /**
   * Follows the selected objects of the resource until the signal aborts, and returns an informer that reads them. No handler is called
   * before the caller has got the informer. The informer's `synced` resolves once `added` has been called for every object of the first
   * list, or once the signal has aborted.
   */
  follow<T extends KubeObject>(
    resource: ResourceRef,
    options: FollowOptions,
    handlers?: InformerHandlers<T>,
  ): Informer<T>;
}

export function createSharedInformers(options: SharedInformersOptions): SharedInformers {
  const running = new Map<string, SharedInformer<KubeObject>>();
  return {
    follow<T extends KubeObject>(
      ref: ResourceRef,
      { fieldSelector, signal }: FollowOptions,
      handlers: InformerHandlers<T> = {},
    ) {
      const key = `${ref.group}/${ref.version}/${ref.resource}`;
      const informer = running.get(key) ?? new SharedInformer(options, ref, () => running.delete(key));
      if (!signal.aborted) running.set(key, informer);
      const shared = informer as unknown as SharedInformer<T>;
      if (fieldSelector === undefined) return shared.follow(signal, handlers);
      const matches = matcher(fieldSelector);
      return narrowed(shared.follow(signal, handlers, matches), matches);
    },
  };
}

class SharedInformer<T extends KubeObject> {
  readonly #options: SharedInformersOptions;
  readonly #ref: ResourceRef;
  readonly #ended: () => void;
  readonly #copy: LocalCopy<T>;
  readonly #users = new Set<InformerHandlers<T>>();
  readonly #stop = new AbortController();
  /** Resolves once the copy contains every object of the first list; undefined before the first follower. */
  #current: Promise<void> | undefined;

  constructor(options: SharedInformersOptions, ref: ResourceRef, ended: () => void) {
    this.#options = options;
    this.#ref = ref;
    this.#ended = ended;
    this.#copy = new LocalCopy(ref.resource, options.log);
  }

  follow(signal: AbortSignal, handlers: InformerHandlers<T>, matches?: Matches): Informer<T> {
    const synced = Promise.withResolvers<void>();
    // A new object identifies each follower, because a component may follow twice with the same handlers.
    const user = { ...handlers };
    if (!signal.aborted) this.#users.add(user);
    queueMicrotask(() => {
      if (signal.aborted) return;
      this.#copy.follow(user, matches);
      this.#current ??= this.#start();
      void this.#current.then(synced.resolve);
    });
    onAbort(signal, () => {
      this.#leave(user);
      synced.resolve();
    });
    return { synced: synced.promise, ...readsOf(this.#copy) };
  }

  #start(): Promise<void> {
    const { client, timers, log } = this.#options;
    const options = { timers, log, signal: this.#stop.signal };
    return keepCurrent<T, T>(client.resource<T>(this.#ref), options, this.#copy, deepFreeze);
  }

  #leave(user: InformerHandlers<T>): void {
    this.#copy.unfollow(user);
    if (!this.#users.delete(user) || this.#users.size > 0) return;
    this.#stop.abort();
    this.#ended();
  }
}

type Matches = (object: KubeObject) => boolean;

function matcher(selector: string): Matches {
  const requirements = parseFieldSelector(selector).map(({ field, op, value }) => {
    const path = field.split('.');
    return (object: KubeObject): boolean => (textAt(object, path) === value) === (op === '=');
  });
  return (object) => requirements.every((matches) => matches(object));
}

/** Returns the empty string if there is no text, as in the field selectors of the API server. */
function textAt(object: unknown, path: readonly string[]): string {
  let value = object;
  for (const field of path) value = (value as Record<string, unknown> | undefined)?.[field];
  return typeof value === 'string' ? value : '';
}

function narrowed<T extends KubeObject>(informer: Informer<T>, matches: Matches): Informer<T> {
  const { get, list, by } = informer;
  return {
    ...informer,
    get(namespace, name) {
      const found = get(namespace, name);
      return found !== undefined && matches(found) ? found : undefined;
    },
    list: () => list().filter(matches),
    by: (keysOf, key) => new Set([...by(keysOf, key)].filter(matches)),
  };
}
