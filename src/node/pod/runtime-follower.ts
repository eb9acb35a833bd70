import type { Log } from '../../platform/platform.ts';
import type { ContainerRuntime, PodObservation } from '../../runtime/runtime.ts';
import type { PodWorker } from './worker/worker.ts';

export interface RuntimeFollowerOptions {
  runtime: Pick<ContainerRuntime, 'events' | 'observeAll'>;
  workers: ReadonlyMap<string, PodWorker>;
  found(podUid: string, records: PodObservation): void;
  log: Log;
  signal: AbortSignal;
}

/**
 * Notifies the workers of changes in the runtime. Returns a function to call once the Pods of the API are known, since Pods in the runtime
 * without an object are terminated. The function resolves after a full observation of the runtime, and rejects if the observation fails.
 */
export function followRuntime({ runtime, workers, found, log, signal }: RuntimeFollowerOptions): () => Promise<void> {
  const listed = Promise.withResolvers<void>();
  const observeAll = async (): Promise<void> => {
    await listed.promise;
    const records = await runtime.observeAll(signal);
    for (const [uid, seen] of records) if (!workers.has(uid)) found(uid, seen);
    for (const worker of workers.values()) worker.changed();
  };
  runtime
    .events((event) => {
      if (event.type === 'changed') workers.get(event.podUid)?.changed();
      else observeAll().catch((error: unknown) => log.warn('resync failed', { error: String(error) }));
    }, signal)
    .catch((error: unknown) => log.error('runtime events ended', { error: String(error) }));
  return () => {
    listed.resolve();
    return observeAll();
  };
}
