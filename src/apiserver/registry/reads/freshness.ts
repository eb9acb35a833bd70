/**
 * Waits until the watch cache has reached a revision of the store. The store may call the listener of the cache some time after a write has
 * resolved (see store/store.ts), so every step that must see earlier writes waits here before it reads the cache.
 *
 * If the cache has already reached the revision, the functions return undefined, and the caller continues in the same turn of the event
 * loop.
 */
import { tooLargeResourceVersion } from '../../../machinery/status.ts';
import type { RegistryContext } from '../context.ts';
import { parseResourceVersion } from './resource-version.ts';

/** Source: upstream's watch cache. */
const FRESH_WAIT_MILLIS = 3000;

/**
 * Returns undefined if the cache has reached the revision. Otherwise, resolves when the cache reaches the revision, and rejects with 504
 * Timeout after FRESH_WAIT_MILLIS.
 */
export function untilRevision({ cache, timers }: RegistryContext, revision: number): Promise<void> | undefined {
  if (cache.revision() >= revision) return undefined;
  return new Promise((resolve, reject) => {
    const timer = timers.at(timers.now() + FRESH_WAIT_MILLIS, () => {
      stop();
      reject(tooLargeResourceVersion(revision, cache.revision()));
    });
    const stop = onceReached(cache, revision, () => {
      timer.cancel();
      resolve();
    });
  });
}

/** Waits until the cache contains each write that had resolved before the call. */
export const untilCurrent = (context: RegistryContext): Promise<void> | undefined =>
  untilRevision(context, context.store.revision());

/**
 * Waits as the resourceVersion of a read requires. Throws 422 Invalid if the text is not a revision. Source: "Resource versions" of the
 * v1.33 API concepts.
 */
export const untilFresh = (context: RegistryContext, resourceVersion: string | undefined): Promise<void> | undefined =>
  resourceVersion ? untilRevision(context, parseResourceVersion(resourceVersion)) : untilCurrent(context);

/**
 * Calls the listener once the cache contains each write that had resolved before the call. Use it to end a reservation when the cache
 * counts the object itself.
 */
export function whenCurrent({ cache, store }: Pick<RegistryContext, 'cache' | 'store'>, listener: () => void): void {
  const revision = store.revision();
  if (cache.revision() >= revision) listener();
  else onceReached(cache, revision, listener);
}

function onceReached(cache: RegistryContext['cache'], revision: number, listener: () => void): () => void {
  const stop = cache.onChange(() => {
    if (cache.revision() < revision) return;
    stop();
    listener();
  });
  return stop;
}
