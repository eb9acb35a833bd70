/**
 * Tells the workers when the runtime has something new of their Pods, and finds the Pods that it has without a worker.
 * Invariants:
 *  1. Events are listened to before the first look, so that nothing falls between the two.
 *  2. Nobody is found before it is known what objects there are: what no object stands for is ended.
 */
import type { Log } from '../../platform/platform.ts';
import type { ContainerRuntime, PodObservation } from '../../runtime/runtime.ts';
import type { PodWorker } from './worker.ts';

export interface RuntimeFollowerOptions {
  runtime: Pick<ContainerRuntime, 'events' | 'observeAll'>;
  /** By the Pods' UIDs. */
  workers: ReadonlyMap<string, PodWorker>;
  /** The runtime has something of a Pod that has no worker. */
  found(podUid: string, records: PodObservation): void;
  log: Log;
  signal: AbortSignal;
}

/** Returns what to call once the objects are known; resolves when the runtime was looked at whole. */
export function followRuntime({ runtime, workers, found, log, signal }: RuntimeFollowerOptions): () => Promise<void> {
  const listed = Promise.withResolvers<void>();
  const lookAtAll = async (): Promise<void> => {
    await listed.promise;
    const records = await runtime.observeAll(signal);
    for (const [uid, seen] of records) if (!workers.has(uid)) found(uid, seen);
    for (const worker of workers.values()) worker.changed();
  };
  runtime
    .events((event) => {
      if (event.type === 'changed') workers.get(event.podUid)?.changed();
      else lookAtAll().catch((error: unknown) => log.warn('resync failed', { error: String(error) }));
    }, signal)
    .catch((error: unknown) => log.error('runtime events ended', { error: String(error) }));
  return () => {
    listed.resolve();
    return lookAtAll();
  };
}
