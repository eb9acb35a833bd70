/**
 * Lets a new Pod wait for its ServiceAccount. Clients often create Pods directly after creating the namespace, when the
 * service-account controller has not yet created the ServiceAccount `default` in it.
 */
import type { ServiceAccount } from '../../api/generated/types.ts';
import { onAbort } from '../../platform/on-abort.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import type { AdmissionServices } from './plugin.ts';

const PREFIX = resourcePrefix('', 'serviceaccounts');
/** How long a new Pod waits for its ServiceAccount. */
const WAIT_MILLIS = 2000;
/** The maximum number of Pods that wait at the same time. It is limited because each waiting Pod stays in memory. */
const MAX_WAITING = 256;

export interface AccountWaits {
  find(namespace: string, name: string): ServiceAccount | undefined;
  /**
   * Resolves to the ServiceAccount as soon as it exists, or to undefined after 2 s or when the signal aborts. If more than 256 Pods wait,
   * the wait of the Pod that has waited longest ends immediately with undefined.
   */
  wait(namespace: string, name: string, signal: AbortSignal): Promise<ServiceAccount | undefined>;
}

export function createAccountWaits({ cache, timers }: Pick<AdmissionServices, 'cache' | 'timers'>): AccountWaits {
  /** The functions that end the waits that are in progress, in the order in which the waits began. */
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
