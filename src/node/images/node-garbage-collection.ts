import { statfs } from 'node:fs/promises';
import type { Node } from '../../api/generated/types.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';
import { type GarbageOptions, type ImageGarbage, startImageGarbageCollection } from './garbage-collection.ts';

export interface NodeGarbageOptions
  extends Pick<GarbageOptions, 'pods' | 'keep' | 'policy' | 'timers' | 'log' | 'signal'> {
  runtime: ContainerRuntime;
  nodeName: string;
  /** The disk of this folder is measured if the runtime does not report the folder of its images. */
  dataDir: string;
  events: EventRecorder;
}

/** Returns undefined, and starts nothing, if the runtime does not store images on a disk. */
export function startNodeGarbageCollection(options: NodeGarbageOptions): ImageGarbage | undefined {
  const { runtime, nodeName, dataDir, events, ...rest } = options;
  const { imagesInUse, imageFolder } = runtime;
  if (imagesInUse === undefined || imageFolder === undefined) return undefined;
  // The node's name is also the UID, as in upstream's Events about a Node.
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, uid: nodeName } };
  return startImageGarbageCollection({
    ...rest,
    runtime,
    inUse: imagesInUse,
    disk: async (signal) => {
      const { blocks, bavail, bsize } = await statfs((await imageFolder(signal)) ?? dataDir);
      return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize };
    },
    warn: (reason, message) => events.event(node, 'Warning', reason, message),
  });
}
