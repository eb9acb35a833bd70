/**
 * Removes unused images while the disk that holds images is above its threshold, and images that have been unused for too long.
 *
 * Boundary: knows which images the runtime's containers and the node's Pods use; does not touch the Pods.
 * Invariants:
 *  1. Images are kept if a container uses them, if a Pod on the node names them (also for defer containers that have not started), or
 *     if the node or the runtime itself needs them.
 *  2. One check runs at a time; a request during a check leads to another check after it.
 *  3. There is one timer: for the next check, or for the time when the next image is old enough to be removed.
 * Source: "Garbage Collection", "Image lifecycle" (v1.33); pkg/kubelet/images/image_gc_manager.go (order, wording).
 */
import type { Pod } from '../../api/generated/types.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Millis, Timer, Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, ImageInfo } from '../../runtime/runtime.ts';
import { imagesOf, isMeant } from './images-in-use.ts';

export interface GarbagePolicy {
  /** Percent of the disk in use at which the removal of images starts. 100: never. */
  highThreshold: number;
  /** Percent of the disk in use at which the removal stops. */
  lowThreshold: number;
  /** A younger image is not removed. */
  minAgeMillis: Millis;
  /** An image unused for this long is removed whatever the disk usage; counted from the agent's start at the earliest. 0: never. */
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
  /** IDs or names of the images of all containers of the runtime, including containers that lifepod did not create. */
  inUse(signal: AbortSignal): Promise<readonly string[]>;
  /** The space of the disk that holds the images. */
  disk(signal: AbortSignal): Promise<DiskSpace>;
  /** The Pods on this node. */
  pods(): readonly Pod[];
  /** References of further images that are kept. */
  keep: readonly string[];
  policy: GarbagePolicy;
  /** Records a warning Event on the Node. */
  warn(reason: string, message: string): void;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

export interface ImageGarbage {
  /** Checks the disk usage: an image was added, or a Pod that used images was removed. */
  check(): void;
  /** Removes all images that are unused and old enough; returns their total size in bytes. */
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

  /** The unused images in the order of removal. Images that existed before the first check count as old. */
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

  /** Removes images that have been unused for too long. Returns when the next image will have been. */
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
      log.info('removing an image that has been unused for too long', { image: id, tags });
      await remove(id, signal).catch((error: Error) => {
        signal.throwIfAborted();
        log.warn('cannot remove an image that has been unused for too long', { image: id, error: error.message });
      });
    }
    return expiries.length === 0 ? undefined : Math.min(...expiries);
  }

  /** Tries all images before it rejects if some could not be removed. */
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

  /** Returns when to check again; undefined: at the next period. `reporting`: reject and record an Event if too little is freed. */
  async function look(reporting: boolean): Promise<Millis | undefined> {
    // Always update when images were first seen and last used, even if nothing needs to be removed.
    const expiry = await freeOld(await unused(signal));
    const { capacityBytes, availableBytes } = await options.disk(signal);
    if (capacityBytes === 0) throw new Error('invalid capacity 0 on image filesystem');
    const available = Math.min(availableBytes, capacityBytes);
    const usedPercent = 100 - Math.floor((available * 100) / capacityBytes);
    if (policy.highThreshold === 100 || usedPercent < policy.highThreshold) return expiry;
    const wantedBytes = Math.floor((capacityBytes * (100 - policy.lowThreshold)) / 100) - available;
    const { freedBytes, oldEnoughAt } = await free(wantedBytes, signal);
    if (freedBytes < wantedBytes && reporting) {
      const message = `Failed to garbage collect required amount of images. Attempted to free ${wantedBytes} bytes, but only found ${freedBytes} bytes eligible to free.`;
      options.warn('FreeDiskSpaceFailed', message);
      throw new Error(message);
    }
    return expiry === undefined || oldEnoughAt === undefined ? (oldEnoughAt ?? expiry) : Math.min(oldEnoughAt, expiry);
  }

  async function round(): Promise<void> {
    const reporting = timers.now() >= nextRound;
    if (reporting) nextRound = timers.now() + PERIOD_MILLIS;
    let oldEnoughAt: Millis | undefined;
    try {
      oldEnoughAt = await look(reporting);
      if (reporting) failedBefore = false;
    } catch (error) {
      if (signal.aborted) return;
      const { message } = error as Error;
      log.warn('image garbage collection failed', { error: message });
      // The first failure may only mean that the node is still starting.
      if (reporting && failedBefore) options.warn('ImageGCFailed', message);
      if (reporting) failedBefore = true;
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
