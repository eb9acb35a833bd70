import type { Pod } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { Platform } from '../../platform/platform.ts';
import type { ContainerRuntime, ImageChange } from '../../runtime/runtime.ts';
import type { KeptReferences } from '../pod/kept-references.ts';
import type { ImageGarbage } from './garbage-collection.ts';
import type { GarbagePolicy } from './garbage-policy.ts';
import { startNodeGarbageCollection } from './node-garbage-collection.ts';
import { createPodImagePull, type PodImagePull } from './pod-images.ts';
import { createImagePuller, DEFAULT_MAX_PARALLEL_PULLS } from './puller.ts';

export interface NodeImageSettings {
  /** Absent: DEFAULT_MAX_PARALLEL_PULLS. */
  maxParallelImagePulls?: number;
  /** `keep`: references of images that are never removed. Absent: no images are removed. */
  imageGarbage?: { policy: GarbagePolicy; keep: readonly string[] };
}

export interface NodeImagesOptions extends NodeImageSettings, Platform {
  client: Client;
  runtime: ContainerRuntime;
  nodeName: string;
  dataDir: string;
  events: EventRecorder;
  kept: Pick<KeptReferences, 'find'>;
  signal: AbortSignal;
  pods(): readonly Pod[];
  /**
   * Called when an image was added to the runtime or updated. `name`: normally as storedName() returns it; undefined: any image may have
   * been added.
   */
  appeared(name: string | undefined): void;
}

export interface NodeImages {
  pull: PodImagePull;
  follow(): void;
  /** The listener is called when the runtime's images may have changed. */
  onChange(listener: () => void): void;
  /**
   * Starts garbage collection, if it is configured and the runtime stores images on a disk. Called after the node's Pods are known, because
   * their images must be kept.
   */
  collect(): void;
  /** Called after a Pod was removed, because the Pod's images may be unused now. */
  podGone(): void;
  /** Resolves to the total size of the removed images in bytes; 0 without garbage collection. Rejects if an image could not be removed. */
  removeUnused(signal: AbortSignal): Promise<number>;
}

export function createNodeImages(options: NodeImagesOptions): NodeImages {
  const { client, runtime, timers, log, signal, events, imageGarbage: wanted } = options;
  const maxParallel = options.maxParallelImagePulls ?? DEFAULT_MAX_PARALLEL_PULLS;
  const listeners: (() => void)[] = [];
  let garbage: ImageGarbage | undefined;
  return {
    pull: createPodImagePull({
      client,
      kept: options.kept,
      puller: createImagePuller({ runtime, timers, maxParallel }),
      warn: (pod, reason, message) => events.event(pod, 'Warning', reason, message),
    }),
    follow() {
      const changed = (change: ImageChange | undefined): void => {
        for (const listener of listeners) listener();
        if (change?.present === false) return;
        options.appeared(change?.name);
        garbage?.check();
      };
      runtime
        .imageChanges?.(changed, signal)
        .catch((error: unknown) => log.error('image events ended', { error: String(error) }));
    },
    onChange: (listener) => void listeners.push(listener),
    collect() {
      if (wanted !== undefined) garbage = startNodeGarbageCollection({ ...options, ...wanted });
    },
    podGone: () => garbage?.check(),
    removeUnused: async (abort) => garbage?.removeUnused(abort) ?? 0,
  };
}
