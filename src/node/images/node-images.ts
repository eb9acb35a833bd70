/** The images of a node, composed: pulls with the Pods' secrets, Pods that wait for an image, and what goes unused. */
import type { Pod } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { Platform } from '../../platform/platform.ts';
import type { ContainerRuntime, ImageChange } from '../../runtime/runtime.ts';
import type { KeptReferences } from '../pod/kept-references.ts';
import type { GarbagePolicy, ImageGarbage } from './garbage-collection.ts';
import { startNodeGarbageCollection } from './node-garbage.ts';
import { createPodImagePull, type PodImagePull } from './pod-images.ts';
import { createImagePuller, DEFAULT_MAX_PARALLEL_PULLS } from './puller.ts';

export interface NodeImageSettings {
  /** Absent: DEFAULT_MAX_PARALLEL_PULLS. */
  maxParallelImagePulls?: number;
  /** When unused images are removed, and which stay. Absent: none is. */
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
  /** On this node. */
  pods(): readonly Pod[];
  /** The runtime has the image of that name (storedName) now; undefined: it may have any. */
  appeared(name: string | undefined): void;
}

export interface NodeImages {
  pull: PodImagePull;
  /** Begins to tell of images that come and go. */
  follow(): void;
  /** Called when the runtime may have other images than before. */
  onChange(listener: () => void): void;
  /** Begins to remove what is unused: once the node's Pods are known. */
  collect(): void;
  /** A Pod is gone: what it used may be too much now. */
  podGone(): void;
  /** Removes all images that are unused and old enough, for the disk is needed; returns how many bytes they had. */
  removeUnused(signal: AbortSignal): Promise<number>;
}

export function createNodeImages(options: NodeImagesOptions): NodeImages {
  const { client, runtime, timers, log, signal, events, imageGarbage: wanted } = options;
  const maxParallel = options.maxParallelImagePulls ?? DEFAULT_MAX_PARALLEL_PULLS;
  const listeners: (() => void)[] = [];
  let garbage: ImageGarbage | undefined;
  return {
    pull: createPodImagePull({
      ...{ client, kept: options.kept },
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
