/**
 * watch: the events of a resource from the cache, as one client wants to see them.
 *
 * An object that begins to match the client's selectors is ADDED to it, one that stops to match is DELETED. Events are
 * shared between watchers, so that each is encoded once.
 */
import type { WatchEvent, WatchOptions, WatchSink } from '../../machinery/backend.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { expired, methodNotAllowed } from '../../machinery/status.ts';
import type { Timer } from '../../platform/platform.ts';
import { oneAtATime, workInTurns } from '../../platform/work-in-turns.ts';
import { objectKey } from '../cache/keys.ts';
import { atRevision, deepFreeze } from '../cache/stored-object.ts';
import { type CacheEvent, TooOldError } from '../cache/watch-cache.ts';
import type { RegistryContext } from './context.ts';
import { listObjects } from './list.ts';
import { checkWatchOptions, parseResourceVersion, untilFresh } from './resource-version.ts';
import type { Resource } from './resources.ts';
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
  const selection = parseSelection(resource.kind, options);
  const revision = parseResourceVersion(options.resourceVersion);
  if (options.sendInitialEvents) await untilFresh(context, revision);
  const wantsPresent = options.sendInitialEvents ?? revision === 0;
  const sent =
    wantsPresent && resource.kind.uncached ? await sendUncached(context, resource, options, sink, signal) : undefined;
  if (signal.aborted) return;
  await new Watcher(context, resource, options, selection, revision, sink, sent).run(signal);
}

/** What is in no cache is read for one watch at a time: it counts as waiting for its client before the next is read. */
const uncachedReads = oneAtATime();

/** Sends what an uncached kind has; returns the revision at which it does. */
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
    const { items, metadata } = await listObjects(context, resource, { namespace, labelSelector, fieldSelector });
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
  readonly #selection: Selection;
  readonly #revision: number;
  readonly #sink: WatchSink;
  readonly #sent: number | undefined;
  readonly #cleanups: (() => void)[] = [];
  #ended = false;
  #resolve: () => void = () => {};

  constructor(
    context: RegistryContext,
    resource: Resource,
    options: WatchOptions,
    selection: Selection,
    revision: number,
    sink: WatchSink,
    /** The present of this revision has been sent. */
    sent: number | undefined,
  ) {
    this.#context = context;
    this.#resource = resource;
    this.#options = options;
    this.#selection = selection;
    this.#revision = revision;
    this.#sink = sink;
    this.#sent = sent;
  }

  run(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      const onAbort = (): void => this.#end();
      signal.addEventListener('abort', onAbort, { once: true });
      this.#cleanups.push(() => signal.removeEventListener('abort', onAbort));
      const namespace = this.#resource.kind.namespaced
        ? this.#options.namespace || this.#selection.namespace
        : undefined;
      this.#follow(namespace, this.#start(namespace));
    });
  }

  /** Sends what the client wants of the present; returns the revision to follow from. */
  #start(namespace: string | undefined): number {
    const { sendInitialEvents } = this.#options;
    const now = this.#sent ?? this.#context.cache.revision();
    if (sendInitialEvents === false) return this.#revision === 0 ? now : this.#revision;
    if (sendInitialEvents === undefined && this.#revision !== 0) return this.#revision;
    for (const stored of this.#sent === undefined ? this.#present(namespace) : []) {
      const object = this.#resource.fromStored(stored);
      if (this.#selection.matches === undefined || this.#selection.matches(object))
        this.#send(initialEvent(object), 'shared');
    }
    if (sendInitialEvents) this.#bookmark(now, { [INITIAL_EVENTS_END]: 'true' });
    return now;
  }

  #present(namespace: string | undefined): KubeObject[] {
    const { cache } = this.#context;
    const { prefix, kind } = this.#resource;
    const { name } = this.#selection;
    if (!name || (kind.namespaced && !namespace)) return cache.list(prefix, namespace);
    const object = cache.get(objectKey(prefix, namespace, name));
    return object === undefined ? [] : [object];
  }

  #follow(namespace: string | undefined, afterRevision: number): void {
    const { cache } = this.#context;
    if (this.#ended) return;
    try {
      this.#onEnd(cache.subscribe(this.#resource.prefix, namespace, afterRevision, (event) => this.#deliver(event)));
    } catch (error) {
      if (!(error instanceof TooOldError)) throw error;
      this.#send({ type: 'ERROR', object: expired(error.message).status });
      this.#end();
      return;
    }
    this.#armBookmarks();
    this.#armTimeout();
  }

  #deliver(event: CacheEvent): void {
    if (this.#ended) return;
    const { matches } = this.#selection;
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
    const metadata = { resourceVersion: String(revision), ...(annotations === undefined ? {} : { annotations }) };
    const object = deepFreeze({ apiVersion, kind: kind.kind, metadata }) as unknown as KubeObject;
    this.#send(Object.freeze({ type: 'BOOKMARK', object }));
  }

  #armBookmarks(): void {
    if (!this.#options.allowWatchBookmarks || this.#ended) return;
    const { timers, cache } = this.#context;
    let timer: Timer;
    const arm = (): void => {
      timer = timers.at(timers.now() + BOOKMARK_INTERVAL_MILLIS, () => {
        this.#bookmark(cache.revision());
        if (!this.#ended) arm();
      });
    };
    arm();
    this.#onEnd(() => timer.cancel());
  }

  #armTimeout(): void {
    const { timeoutSeconds } = this.#options;
    if (!timeoutSeconds || this.#ended) return;
    const { timers, cache } = this.#context;
    const timer = timers.at(timers.now() + timeoutSeconds * 1000, () => {
      this.#bookmark(cache.revision());
      this.#end();
    });
    this.#onEnd(() => timer.cancel());
  }

  /** The sink may end the watch before its own set-up is over. */
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

/** The served events of a cache event, by resource: two kinds may show one stored object. */
const served = new WeakMap<CacheEvent, Map<Resource, Partial<Record<ChangeType, WatchEvent>>>>();

function shared(event: CacheEvent, resource: Resource, type: ChangeType): WatchEvent {
  const byResource = served.get(event) ?? new Map<Resource, Partial<Record<ChangeType, WatchEvent>>>();
  served.set(event, byResource);
  const byType = byResource.get(resource) ?? {};
  byResource.set(resource, byType);
  byType[type] ??= Object.freeze({ type, object: resource.fromStored(stateFor(event, type)) });
  return byType[type];
}

/** An object that stops to match is shown as it last did, at the revision of the change. */
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
