/**
 * Removes images that nothing uses while the disk that holds them is fuller than it may be, and those that nothing has used for
 * long.
 *
 * Boundary: knows what the runtime's containers and the node's Pods use; the Pods themselves are not touched.
 * Invariants:
 *  1. What a container is of, what a Pod on the node names (its defer containers too, that are still to come) and what the
 *     node or the runtime itself needs stay.
 *  2. One look at a time; what happens meanwhile is followed by another.
 *  3. There is one timer: for the next look, or for when the next image is old enough to go.
 * Source: "Garbage Collection", "Image lifecycle" (v1.33); pkg/kubelet/images/image_gc_manager.go (order, wording).
 */
import type { Pod } from '../../api/generated/types.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Millis, Timer, Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, ImageInfo } from '../../runtime/runtime.ts';
import { imagesOf, isMeant } from './images-in-use.ts';

export interface GarbagePolicy {
  /** Percent of the disk: from here on images are removed. 100: never. */
  highThreshold: number;
  /** Percent: until here. */
  lowThreshold: number;
  /** An image that came later stays. */
  minAgeMillis: Millis;
  /** An image that nothing has used for so long goes however much room there is; no time counts before the start. 0: never. */
  maxAgeMillis: Millis;
}

export const DEFAULT_GARBAGE_POLICY: GarbagePolicy = {
  highThreshold: 85,
  lowThreshold: 80,
  minAgeMillis: 120_000,
  maxAgeMillis: 0,
};

export interface DiskSpace {
  capacityBytes: number;
  availableBytes: number;
}

export interface GarbageOptions {
  runtime: Pick<ContainerRuntime, 'listImages' | 'removeImage'>;
  /** IDs or names of the images of all containers of the runtime, whoever made them. */
  inUse(signal: AbortSignal): Promise<readonly string[]>;
  /** Of the disk that holds the images. */
  disk(signal: AbortSignal): Promise<DiskSpace>;
  /** On this node. */
  pods(): readonly Pod[];
  /** References of further images that stay. */
  keep: readonly string[];
  policy: GarbagePolicy;
  /** An Event on the node. */
  warn(reason: string, message: string): void;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

export interface ImageGarbage {
  /** Images came, or are used by a Pod less: looks whether there is too much. */
  check(): void;
  /** Removes all that are unused and old enough; returns how many bytes they had. */
  removeUnused(signal: AbortSignal): Promise<number>;
}

const PERIOD_MILLIS = 5 * 60_000;

interface Seen {
  firstSeen: Millis;
  lastUsed: Millis;
}

export function startImageGarbageCollection(options: GarbageOptions): ImageGarbage {
  const { runtime, policy, timers, log, signal } = options;
  const seen = new Map<string, Seen>();
  let first = true;
  let failedBefore = false;
  let running = false;
  let again = false;
  const startedAt = timers.now();
  let nextRound = startedAt;
  let timer: Timer | undefined;

  /** Those that may go some time, the first to go first. What was there before the first look counts as old. */
  async function unused(abort: AbortSignal): Promise<ImageInfo[]> {
    const [images, containers] = await Promise.all([runtime.listImages(abort), options.inUse(abort)]);
    const named = [...containers, ...options.keep, ...options.pods().flatMap(imagesOf)];
    const now = timers.now();
    const used = new Set(images.filter((image) => image.pinned || named.some((name) => isMeant(image, name))));
    for (const { id } of images) if (!seen.has(id)) seen.set(id, { firstSeen: first ? 0 : now, lastUsed: 0 });
    for (const { id } of used) (seen.get(id) as Seen).lastUsed = now;
    const present = new Set(images.map(({ id }) => id));
    for (const id of seen.keys()) if (!present.has(id)) seen.delete(id);
    first = false;
    const order = ({ id }: ImageInfo): Seen => seen.get(id) as Seen;
    return images
      .filter((image) => !used.has(image))
      .sort((a, b) => order(a).lastUsed - order(b).lastUsed || order(a).firstSeen - order(b).firstSeen);
  }

  async function remove(id: string, abort: AbortSignal): Promise<void> {
    await runtime.removeImage(id, abort);
    seen.delete(id);
  }

  /** Removes what nothing has used for too long. Returns when the next image will have been. */
  async function freeOld(images: readonly ImageInfo[]): Promise<Millis | undefined> {
    if (policy.maxAgeMillis === 0) return undefined;
    const expiries: Millis[] = [];
    for (const { id, tags } of images) {
      const { lastUsed, firstSeen } = seen.get(id) as Seen;
      const expiry = Math.max(lastUsed, firstSeen, startedAt) + policy.maxAgeMillis;
      if (expiry > timers.now()) {
        expiries.push(expiry);
        continue;
      }
      log.info('removing an image that nothing has used for long', { image: id, tags });
      await remove(id, signal).catch((error: Error) => {
        signal.throwIfAborted();
        log.warn('an image that nothing has used for long stays', { image: id, error: error.message });
      });
    }
    return expiries.length === 0 ? undefined : Math.min(...expiries);
  }

  /** Rejects where an image could not be removed, once all have been tried. */
  async function free(wantedBytes: number, abort: AbortSignal): Promise<{ freedBytes: number; oldEnoughAt?: Millis }> {
    let freedBytes = 0;
    const refusals: string[] = [];
    const young: Millis[] = [];
    for (const { id, sizeBytes, tags } of await unused(abort)) {
      if (freedBytes >= wantedBytes) break;
      const oldAt = (seen.get(id)?.firstSeen ?? 0) + policy.minAgeMillis;
      if (oldAt > timers.now()) {
        young.push(oldAt);
        continue;
      }
      log.info('removing an unused image', { image: id, tags, sizeBytes });
      try {
        await remove(id, abort);
        freedBytes += sizeBytes;
      } catch (error) {
        abort.throwIfAborted();
        refusals.push((error as Error).message);
      }
    }
    if (refusals.length > 0)
      throw new Error(
        `wanted to free ${wantedBytes} bytes, but freed ${freedBytes} bytes space with errors in image deletion: ${refusals.join(', ')}`,
      );
    return { freedBytes, ...(young.length === 0 ? {} : { oldEnoughAt: Math.min(...young) }) };
  }

  /** Returns when to look again, where that is known. `telling`: of what cannot be freed. */
  async function look(telling: boolean): Promise<Millis | undefined> {
    // The time at which an image came, or was used last, counts from now.
    const expiry = await freeOld(await unused(signal));
    const { capacityBytes, availableBytes } = await options.disk(signal);
    if (capacityBytes === 0) throw new Error('invalid capacity 0 on image filesystem');
    const available = Math.min(availableBytes, capacityBytes);
    const usedPercent = 100 - Math.floor((available * 100) / capacityBytes);
    if (policy.highThreshold === 100 || usedPercent < policy.highThreshold) return expiry;
    const wantedBytes = Math.floor((capacityBytes * (100 - policy.lowThreshold)) / 100) - available;
    const { freedBytes, oldEnoughAt } = await free(wantedBytes, signal);
    if (freedBytes < wantedBytes && telling) {
      const message = `Failed to garbage collect required amount of images. Attempted to free ${wantedBytes} bytes, but only found ${freedBytes} bytes eligible to free.`;
      options.warn('FreeDiskSpaceFailed', message);
      throw new Error(message);
    }
    return expiry === undefined || oldEnoughAt === undefined ? (oldEnoughAt ?? expiry) : Math.min(oldEnoughAt, expiry);
  }

  async function round(): Promise<void> {
    const telling = timers.now() >= nextRound;
    if (telling) nextRound = timers.now() + PERIOD_MILLIS;
    let oldEnoughAt: Millis | undefined;
    try {
      oldEnoughAt = await look(telling);
      if (telling) failedBefore = false;
    } catch (error) {
      if (signal.aborted) return;
      const { message } = error as Error;
      log.warn('images were not cleared away', { error: message });
      // The first failure may be that of a node that is starting.
      if (telling && failedBefore) options.warn('ImageGCFailed', message);
      if (telling) failedBefore = true;
    }
    timer?.cancel();
    if (!signal.aborted) timer = timers.at(Math.min(nextRound, oldEnoughAt ?? nextRound), check);
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
  return { check, removeUnused: async (abort) => (await free(Number.POSITIVE_INFINITY, abort)).freedBytes };
}
