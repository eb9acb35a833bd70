/**
 * Invariants:
 * - One query runs at a time; concurrent readers share the query's answer.
 * - No reader waits longer than 30 s. A runtime that has hung for 30 s counts as down until it answers.
 * - After a successful listing, images are listed again only after imagesChanged() was called.
 * Source: pkg/kubelet/runtime.go and kubelet.go of v1.33 (maxWaitForContainerRuntime: 30 s).
 */
import type { ContainerImage } from '../../api/generated/types.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, RuntimeFeatures } from '../../runtime/runtime.ts';
import { reportedImages } from '../images/status-images.ts';

const SILENT_MILLIS = 30_000;
const SILENT = `container runtime is down: it has not answered for ${SILENT_MILLIS / 1000} s`;

export interface RuntimeState {
  /** Empty if the runtime is ready. */
  problems: readonly string[];
  /** The name and version, such as containerd://1.6.20. If the runtime is down, the last known version; '' if none is known. */
  version: string;
  images: readonly ContainerImage[];
  /** Undefined if the runtime does not report its features, or has not answered yet. */
  features?: RuntimeFeatures;
}

export interface RuntimeStateOptions {
  runtime: Pick<ContainerRuntime, 'notReady' | 'version' | 'listImages' | 'features'>;
  timers: Timers;
  signal: AbortSignal;
  /** Called when a runtime that was down because it hung answers again. */
  answered(): void;
}

export interface RuntimeStateSource {
  /** Rejects when `signal` aborts. */
  read(): Promise<RuntimeState>;
  /** Makes the next query list the images again. */
  imagesChanged(): void;
}

export function createRuntimeState({ runtime, timers, signal, answered }: RuntimeStateOptions): RuntimeStateSource {
  let asking: Promise<RuntimeState> | undefined;
  let silent = false;
  let imagesStale = true;
  let last: RuntimeState = { problems: [], version: '', images: [] };

  const listImages = async (): Promise<readonly ContainerImage[]> => {
    if (!imagesStale) return last.images;
    imagesStale = false;
    try {
      const images = reportedImages(await runtime.listImages(signal));
      // Keep the images even if the other calls of this query fail.
      last = { ...last, images };
      return images;
    } catch (error) {
      imagesStale = true;
      throw error;
    }
  };
  const ask = async (): Promise<RuntimeState> => {
    try {
      const [problems, { name, version }, images, features] = await Promise.all([
        runtime.notReady(signal),
        runtime.version(signal),
        listImages(),
        runtime.features?.(signal),
      ]);
      last = { problems, version: `${name}://${version.replace(/^v/, '')}`, images, features };
      if (silent) queueMicrotask(answered);
      silent = false;
      return last;
    } catch (error) {
      signal.throwIfAborted();
      return { ...last, problems: [`container runtime is down: ${(error as Error).message}`] };
    }
  };
  const down = (): RuntimeState => ({ ...last, problems: [SILENT] });

  return {
    imagesChanged() {
      imagesStale = true;
    },
    async read() {
      const answer =
        asking ??
        ask().finally(() => {
          asking = undefined;
        });
      asking = answer;
      // Waiting readers handle a rejection below. If no reader waits, the rejection must not count as unhandled.
      answer.catch(() => undefined);
      if (silent) return down();
      const silence = Promise.withResolvers<RuntimeState>();
      const timer = timers.at(timers.now() + SILENT_MILLIS, () => {
        silent = true;
        silence.resolve(down());
      });
      try {
        return await Promise.race([answer, silence.promise]);
      } finally {
        timer.cancel();
      }
    },
  };
}
