import type { Pod } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, ImageInfo } from '../../runtime/runtime.ts';
import { earliestOf, type GarbagePolicy } from './garbage-policy.ts';
import { imagesOf, isMeant } from './images-in-use.ts';

export interface RemovalOptions {
  runtime: Pick<ContainerRuntime, 'listImages' | 'imageStatus' | 'removeImage'>;
  /** Resolves to the IDs or names of the images of all containers in the runtime, including containers that lifepod did not create. */
  inUse(signal: AbortSignal): Promise<readonly string[]>;
  pods(): readonly Pod[];
  /** The references of images that are never removed, even if they are unused. */
  keep: readonly string[];
  policy: GarbagePolicy;
  timers: Timers;
  log: Log;
}

export interface ImageRemoval {
  /**
   * Removes images that have been unused for `policy.maxAgeMillis`. A failed removal is only logged. Resolves to the time at which the next
   * unused image reaches that age; undefined if there is no such image or `maxAgeMillis` is 0.
   */
  freeOld(signal: AbortSignal): Promise<Millis | undefined>;
  /**
   * Removes unused images until `wantedBytes` are freed, but skips images that are too young. Rejects at the end if an image could not be
   * removed. `oldEnoughAt`: when the first of the skipped images becomes old enough; undefined if no image was skipped.
   */
  free(wantedBytes: number, signal: AbortSignal): Promise<{ freedBytes: number; oldEnoughAt: Millis | undefined }>;
}

export function createImageRemoval(options: RemovalOptions): ImageRemoval {
  const { runtime, policy, timers, log } = options;
  const startedAt = timers.now();
  const history = createImageHistory();

  /** Resolves to the unused images in the order of removal. */
  async function unused(signal: AbortSignal): Promise<ImageInfo[]> {
    const [images, containers] = await Promise.all([runtime.listImages(signal), options.inUse(signal)]);
    const named = [...containers, ...options.keep, ...options.pods().flatMap(imagesOf)];
    const used = new Set(images.filter((image) => image.pinned || named.some((name) => isMeant(image, name))));
    history.update(images, used, timers.now());
    return images.filter((image) => !used.has(image)).sort(history.inRemovalOrder);
  }

  async function remove(image: ImageInfo, message: string, signal: AbortSignal): Promise<boolean> {
    if (await isNeededNow(options, image, signal)) return false;
    const { id, tags, sizeBytes } = image;
    log.info(message, { image: id, tags, sizeBytes });
    await runtime.removeImage(id, signal);
    history.forget(id);
    return true;
  }

  return {
    async freeOld(signal) {
      const images = await unused(signal);
      if (policy.maxAgeMillis === 0) return undefined;
      const expiries: Millis[] = [];
      for (const image of images) {
        const { lastUsed, firstSeen } = history.timesOf(image.id);
        const expiry = Math.max(lastUsed, firstSeen, startedAt) + policy.maxAgeMillis;
        if (expiry > timers.now()) {
          expiries.push(expiry);
          continue;
        }
        await remove(image, 'removing an image that has been unused for too long', signal).catch((error: Error) => {
          signal.throwIfAborted();
          log.warn('cannot remove an image that has been unused for too long', {
            image: image.id,
            error: error.message,
          });
        });
      }
      return earliestOf(expiries);
    },
    async free(wantedBytes, signal) {
      let freedBytes = 0;
      const refusals: string[] = [];
      const youngUntil: Millis[] = [];
      for (const image of await unused(signal)) {
        if (freedBytes >= wantedBytes) break;
        const oldAt = history.timesOf(image.id).firstSeen + policy.minAgeMillis;
        if (oldAt > timers.now()) {
          youngUntil.push(oldAt);
          continue;
        }
        try {
          if (await remove(image, 'removing an unused image', signal)) freedBytes += image.sizeBytes;
        } catch (error) {
          signal.throwIfAborted();
          refusals.push((error as Error).message);
        }
      }
      if (refusals.length > 0) throw incompleteRemoval(wantedBytes, freedBytes, refusals);
      return { freedBytes, oldEnoughAt: earliestOf(youngUntil) };
    },
  };
}

const incompleteRemoval = (wantedBytes: number, freedBytes: number, refusals: readonly string[]): Error =>
  new Error(
    `wanted to free ${wantedBytes} bytes, but freed ${freedBytes} bytes space with errors in image deletion: ${refusals.join(', ')}`,
  );

/**
 * Resolves with whether the image has got another name or a Pod that needs it since it was listed. The removal of many images takes long,
 * and the runtime removes an image with all its names, also with those that a load has just assigned.
 */
async function isNeededNow(
  { runtime, pods }: RemovalOptions,
  listed: ImageInfo,
  signal: AbortSignal,
): Promise<boolean> {
  const image = (await runtime.imageStatus(listed.id, signal)) ?? listed;
  const isNew = image.tags.some((tag) => !listed.tags.includes(tag));
  return isNew || pods().some((pod) => imagesOf(pod).some((name) => isMeant(image, name)));
}

/** `firstSeen` is 0 for images of the agent's first listing; `lastUsed` is 0 if the image was never seen in use. */
interface ImageTimes {
  firstSeen: Millis;
  lastUsed: Millis;
}

interface ImageHistory {
  /** The images of the first listing count as old. */
  update(images: readonly ImageInfo[], used: ReadonlySet<ImageInfo>, now: Millis): void;
  forget(id: string): void;
  timesOf(id: string): ImageTimes;
  inRemovalOrder(a: ImageInfo, b: ImageInfo): number;
}

function createImageHistory(): ImageHistory {
  let first = true;
  const seen = new Map<string, ImageTimes>();
  const timesOf = (id: string): ImageTimes => seen.get(id) ?? { firstSeen: 0, lastUsed: 0 };
  return {
    update(images, used, now) {
      for (const { id } of images) if (!seen.has(id)) seen.set(id, { firstSeen: first ? 0 : now, lastUsed: 0 });
      for (const { id } of used) seen.set(id, { ...timesOf(id), lastUsed: now });
      const present = new Set(images.map(({ id }) => id));
      for (const id of seen.keys()) if (!present.has(id)) seen.delete(id);
      first = false;
    },
    forget: (id) => void seen.delete(id),
    timesOf,
    inRemovalOrder(a, b) {
      const [timesOfA, timesOfB] = [timesOf(a.id), timesOf(b.id)];
      return timesOfA.lastUsed - timesOfB.lastUsed || timesOfA.firstSeen - timesOfB.firstSeen;
    },
  };
}
