/**
 * The verb watch: sends the changes of a resource's objects from the cache, filtered for one client.
 *
 * A change that makes an object match the client's selectors is ADDED; a change after which the object no longer matches is DELETED. The
 * watches of a resource share the WatchEvent objects, so that each is encoded only once.
 *
 * If the resource is removed from the catalog, its watches end with an ERROR event that contains the error of later requests: 404.
 */

import { deepFreeze } from '../../../machinery/deep-freeze.ts';
import type { KubeObject, Status } from '../../../machinery/meta.ts';
import { expired, methodNotAllowed, pathNotFound } from '../../../machinery/status.ts';
import type { Timer } from '../../../platform/platform.ts';
import { oneAtATime, runInTurns, workInTurns } from '../../../platform/work-in-turns.ts';
import type { WatchEvent, WatchOptions, WatchSink } from '../../../ports/backend.ts';
import { atRevision } from '../../cache/stored-object.ts';
import { type CacheEvent, TooOldError } from '../../cache/watch-cache.ts';
import type { RegistryContext } from '../context.ts';
import type { Resource } from '../resources.ts';
import { untilFresh } from './freshness.ts';
import { cachedPage, listObjects } from './list.ts';
import { checkWatchOptions, parseResourceVersion } from './resource-version.ts';
import { parseSelection, type Selection } from './selection.ts';

/** Source: upstream's cacher sends a bookmark about once a minute. */
const BOOKMARK_INTERVAL_MILLIS = 60_000;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export async function watchObjects(
  context: RegistryContext,
  resource: Resource,
  options: WatchOptions,
  sink: WatchSink,
  signal: AbortSignal,
): Promise<void> {
  if (resource.kind.createOnly) throw methodNotAllowed();
  checkWatchOptions(options);
  const leave = context.selectors.take(options);
  try {
    await watchSelected(context, resource, options, sink, signal);
  } finally {
    leave();
  }
}

async function watchSelected(
  context: RegistryContext,
  resource: Resource,
  options: WatchOptions,
  sink: WatchSink,
  signal: AbortSignal,
): Promise<void> {
  const selection = parseSelection(resource.kind, options);
  const revision = parseResourceVersion(options.resourceVersion);
  // Without initial events, a watch from a revision does not read the current state, and so need not wait for the cache.
  if (revision === 0 || options.sendInitialEvents) {
    const behind = untilFresh(context, options.resourceVersion);
    if (behind !== undefined) await behind;
  }
  const wantsPresent = options.sendInitialEvents ?? revision === 0;
  const namespace = resource.kind.namespaced ? options.namespace || selection.namespace : undefined;
  let present: Present | undefined;
  if (wantsPresent && resource.kind.uncached) {
    present = { items: [], revision: await sendUncached(context, resource, options, sink, signal) };
  } else if (wantsPresent) {
    const steps = cachedPage(context, resource, { namespace, selection, limit: 0 });
    const first = steps.next();
    present = first.done ? first.value : await runInTurns(steps, workInTurns());
  }
  if (signal.aborted) return;
  await new Watcher(context, resource, options, { namespace, selection, revision }, sink).run(present, signal);
}

interface Present {
  /** Empty for uncached kinds, whose objects sendUncached() has already sent. */
  items: readonly KubeObject[];
  revision: number;
}

interface Watched {
  namespace: string | undefined;
  selection: Selection;
  /** 0 if the request has no resourceVersion. */
  revision: number;
}

/**
 * Before a watch reads uncached objects, the previous watch has passed all its objects to its sink. The sink counts them as waiting for
 * their client, so that the limit on waiting objects applies.
 */
const uncachedReads = oneAtATime();

/** Sends the current objects to the sink. Resolves to the revision of their list; 0 if the signal is aborted before the list is read. */
async function sendUncached(
  context: RegistryContext,
  resource: Resource,
  { namespace, labelSelector, fieldSelector }: WatchOptions,
  sink: WatchSink,
  signal: AbortSignal,
): Promise<number> {
  const leave = await uncachedReads.enter();
  try {
    if (signal.aborted) return 0;
    const betweenSteps = workInTurns();
    const options = { namespace, labelSelector, fieldSelector };
    const { items, metadata } = await listObjects(context, resource, options, signal);
    for (const object of items) {
      if (signal.aborted) break;
      sink(initialEvent(object), 'own');
      await betweenSteps();
    }
    return Number(metadata.resourceVersion);
  } finally {
    leave();
  }
}

class Watcher {
  readonly #context: RegistryContext;
  readonly #resource: Resource;
  readonly #options: WatchOptions;
  readonly #watched: Watched;
  readonly #sink: WatchSink;
  readonly #cleanups: (() => void)[] = [];
  #ended = false;
  /** The revision after which the watch began. The cache may not have reached it yet. */
  #begin = 0;
  #resolve: () => void = () => {};

  constructor(context: RegistryContext, resource: Resource, options: WatchOptions, watched: Watched, sink: WatchSink) {
    this.#context = context;
    this.#resource = resource;
    this.#options = options;
    this.#watched = watched;
    this.#sink = sink;
  }

  /**
   * Resolves when the watch ends. Keeps no reference to `present`: its objects may be replaced while the watch runs, and must then be
   * garbage-collected.
   */
  run(present: Present | undefined, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      const onAbort = (): void => this.#end();
      signal.addEventListener('abort', onAbort, { once: true });
      this.#cleanups.push(() => signal.removeEventListener('abort', onAbort));
      // If the resource was removed while the watch waited for its initial state, the watch ends here.
      this.#onEnd(this.#resource.onRemove(() => this.#fail(pathNotFound().status)));
      this.#follow(this.#start(present));
    });
  }

  #start(present: Present | undefined): number {
    const { revision } = this.#watched;
    if (present === undefined) return revision === 0 ? this.#context.cache.revision() : revision;
    for (const object of present.items) this.#send(initialEvent(object), 'shared');
    if (this.#options.sendInitialEvents) this.#bookmark(present.revision, { [INITIAL_EVENTS_END]: 'true' });
    return present.revision;
  }

  #follow(afterRevision: number): void {
    const { cache } = this.#context;
    const { namespace, selection } = this.#watched;
    if (this.#ended) return;
    this.#begin = afterRevision;
    try {
      const deliver = (event: CacheEvent): void => this.#deliver(event);
      this.#onEnd(cache.subscribe(this.#resource.prefix, namespace, afterRevision, deliver, selection.indexed));
    } catch (error) {
      if (!(error instanceof TooOldError)) throw error;
      this.#fail(expired(error.message).status);
      return;
    }
    this.#armBookmarks();
    this.#armTimeout();
  }

  #fail(object: Status): void {
    this.#send({ type: 'ERROR', object });
    this.#end();
  }

  #deliver(event: CacheEvent): void {
    if (this.#ended) return;
    const { matches } = this.#watched.selection;
    const object = this.#resource.fromStored(event.object);
    const matchesNow = event.type !== 'DELETED' && (matches?.(object) ?? true);
    const matchedBefore =
      event.previous !== undefined && (matches?.(this.#resource.fromStored(event.previous)) ?? true);
    if (matchesNow) this.#send(shared(event, this.#resource, matchedBefore ? 'MODIFIED' : 'ADDED'));
    else if (matchedBefore) this.#send(shared(event, this.#resource, 'DELETED'));
  }

  #send(event: WatchEvent, initial?: 'shared'): void {
    if (!this.#ended) this.#sink(event, initial);
  }

  #bookmark(revision: number, annotations?: Record<string, string>): void {
    if (!this.#options.allowWatchBookmarks) return;
    const { apiVersion, kind } = this.#resource;
    const metadata = { resourceVersion: String(revision), annotations };
    const object = deepFreeze({ apiVersion, kind: kind.kind, metadata }) as unknown as KubeObject;
    this.#send(Object.freeze({ type: 'BOOKMARK', object }));
  }

  #reached(): number {
    return Math.max(this.#begin, this.#context.cache.revision());
  }

  #armBookmarks(): void {
    if (!this.#options.allowWatchBookmarks || this.#ended) return;
    const { timers } = this.#context;
    let timer: Timer;
    const arm = (): void => {
      timer = timers.at(timers.now() + BOOKMARK_INTERVAL_MILLIS, () => {
        this.#bookmark(this.#reached());
        if (!this.#ended) arm();
      });
    };
    arm();
    this.#onEnd(() => timer.cancel());
  }

  #armTimeout(): void {
    const { timeoutSeconds } = this.#options;
    if (!timeoutSeconds || this.#ended) return;
    const { timers } = this.#context;
    const timer = timers.at(timers.now() + timeoutSeconds * 1000, () => {
      this.#bookmark(this.#reached());
      this.#end();
    });
    this.#onEnd(() => timer.cancel());
  }

  /** Calls `cleanup` immediately if the watch has already ended: the sink can end a watch that is still being set up. */
  #onEnd(cleanup: () => void): void {
    if (this.#ended) cleanup();
    else this.#cleanups.push(cleanup);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const cleanup of this.#cleanups) cleanup();
    this.#resolve();
  }
}

type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * The WatchEvents of a CacheEvent, by resource and type. Two kinds may serve the same stored object, so an event can belong to several
 * resources.
 */
const served = new WeakMap<CacheEvent, Map<Resource, Partial<Record<ChangeType, WatchEvent>>>>();

/** The watches of the resource share the WatchEvent. */
function shared(event: CacheEvent, resource: Resource, type: ChangeType): WatchEvent {
  const byResource = served.get(event) ?? new Map<Resource, Partial<Record<ChangeType, WatchEvent>>>();
  served.set(event, byResource);
  const byType = byResource.get(resource) ?? {};
  byResource.set(resource, byType);
  byType[type] ??= Object.freeze({ type, object: resource.fromStored(stateFor(event, type)) });
  return byType[type];
}

/** If an update makes the object stop matching, returns its last matching state with the revision of the update. */
const stateFor = (event: CacheEvent, type: ChangeType): KubeObject =>
  type === 'DELETED' && event.type !== 'DELETED' && event.previous !== undefined
    ? atRevision(event.previous, event.revision)
    : event.object;

const initialEvents = new WeakMap<KubeObject, WatchEvent>();

function initialEvent(object: KubeObject): WatchEvent {
  let event = initialEvents.get(object);
  if (event === undefined) {
    event = Object.freeze({ type: 'ADDED', object });
    initialEvents.set(object, event);
  }
  return event;
}
