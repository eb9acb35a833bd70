/**
 * Lets a new Pod wait for its ServiceAccount. Clients often create Pods directly after the namespace, before the service-account controller
 * has created the ServiceAccount `default`.
 */
import type { ServiceAccount } from '../../api/generated/types.ts';
import { onAbort } from '../../platform/on-abort.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import type { AdmissionServices } from './plugin.ts';

const PREFIX = resourcePrefix('', 'serviceaccounts');
const WAIT_MILLIS = 2000;
/** Limits the memory of the waiting Pods. */
const MAX_WAITING = 256;

export interface AccountWaits {
  find(namespace: string, name: string): ServiceAccount | undefined;
  /**
   * Resolves to the ServiceAccount as soon as it exists, or to undefined after 2 s or when the signal aborts. Beyond 256 waiting Pods, the
   * longest wait ends immediately with undefined.
   */
  wait(namespace: string, name: string, signal: AbortSignal): Promise<ServiceAccount | undefined>;
}

export function createAccountWaits({ cache, timers }: Pick<AdmissionServices, 'cache' | 'timers'>): AccountWaits {
  /** Functions that end a wait, the longest wait first. */
  const waiting = new Set<() => void>();
  const find = (namespace: string, name: string): ServiceAccount | undefined =>
    cache.get(objectKey(PREFIX, namespace, name)) as ServiceAccount | undefined;
  return {
    find,
    wait: (namespace, name, signal) =>
      new Promise((resolve) => {
        const settle = (): void => {
          waiting.delete(settle);
          unsubscribe();
          timer.cancel();
          signal.removeEventListener('abort', settle);
          resolve(find(namespace, name));
        };
        const unsubscribe = cache.subscribe(PREFIX, namespace, cache.revision(), () => {
          if (find(namespace, name) !== undefined) settle();
        });
        const timer = timers.at(timers.now() + WAIT_MILLIS, settle);
        waiting.add(settle);
        onAbort(signal, settle);
        const [longest] = waiting;
        if (waiting.size > MAX_WAITING) longest?.();
      }),
  };
}
