/**
 * Invariants:
 * - An image is kept if a container uses it, if a Pod on the node names it (even for a defer container that has not started), or if the
 *   node or the runtime itself needs it.
 * - One check runs at a time. A request during a check causes another check after it.
 * Source: "Garbage Collection", "Image lifecycle" (v1.33); pkg/kubelet/images/image_gc_manager.go (order, wording).
 */
import type { Millis } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer } from '../../platform/platform.ts';
import { bytesToFree, type DiskSpace, earliestOf } from './garbage-policy.ts';
import { createImageRemoval, type RemovalOptions } from './image-removal.ts';

export interface GarbageOptions extends RemovalOptions {
  disk(signal: AbortSignal): Promise<DiskSpace>;
  warn(reason: string, message: string): void;
  signal: AbortSignal;
}

export interface ImageGarbage {
  /** Called after images may have been added, and after a Pod was removed. */
  check(): void;
  /**
   * Removes all unused images that were first seen long enough ago (minAgeMillis). Resolves to their total size in bytes. Rejects if an
   * image could not be removed.
   */
  removeUnused(signal: AbortSignal): Promise<number>;
}

const PERIOD_MILLIS = 5 * 60_000;

export function startImageGarbageCollection(options: GarbageOptions): ImageGarbage {
  const { policy, timers, log, signal } = options;
  const removal = createImageRemoval(options);
  let failedBefore = false;
  let running = false;
  let again = false;
  let nextRound = timers.now();
  let timer: Timer | undefined;

  /**
   * Resolves to the time at which to check again; undefined: at the next periodic check. If `reporting` is true and too little was freed,
   * records an Event and rejects.
   */
  async function look(reporting: boolean): Promise<Millis | undefined> {
    // Even if freeOld() removes no image, its listing records when images were first seen and last used.
    const expiry = await removal.freeOld(signal);
    const wantedBytes = bytesToFree(await options.disk(signal), policy);
    if (wantedBytes === undefined) return expiry;
    const { freedBytes, oldEnoughAt } = await removal.free(wantedBytes, signal);
    if (freedBytes < wantedBytes && reporting) {
      const message = `Failed to garbage collect required amount of images. Attempted to free ${wantedBytes} bytes, but only found ${freedBytes} bytes eligible to free.`;
      options.warn('FreeDiskSpaceFailed', message);
      throw new Error(message);
    }
    return earliestOf([oldEnoughAt, expiry]);
  }

  async function round(): Promise<void> {
    const reporting = timers.now() >= nextRound;
    if (reporting) nextRound = timers.now() + PERIOD_MILLIS;
    let lookAt: Millis | undefined;
    try {
      lookAt = await look(reporting);
      if (reporting) failedBefore = false;
    } catch (error) {
      if (signal.aborted) return;
      const { message } = error as Error;
      log.warn('image garbage collection failed', { error: message });
      // The first failure may only mean that the node is still starting, so the Event is recorded from the second consecutive failure of a
      // periodic check on.
      if (reporting && failedBefore) options.warn('ImageGCFailed', message);
      if (reporting) failedBefore = true;
    }
    timer?.cancel();
    if (!signal.aborted) timer = timers.at(Math.min(nextRound, lookAt ?? nextRound), check);
  }

  function check(): void {
    again = true;
    if (running || signal.aborted) return;
    running = true;
    void (async () => {
      while (again && !signal.aborted) {
        again = false;
        await round();
      }
      running = false;
    })();
  }

  onAbort(signal, () => timer?.cancel());
  check();
  return { check, removeUnused: async (abort) => (await removal.free(Number.POSITIVE_INFINITY, abort)).freedBytes };
}
