/**
 * Lets a new Pod wait for its ServiceAccount. Clients often create Pods directly after creating the namespace, when the
 * service-account controller has not yet created the ServiceAccount `default` in it.
 */
import type { ServiceAccount } from '../../../api/generated/types.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import type { RegistryContext } from '../context.ts';

const SERVICE_ACCOUNTS_PREFIX = resourcePrefix('', 'serviceaccounts');
/** How long a new Pod waits for its ServiceAccount. */
const WAIT_MILLIS = 2000;
/**
 * The maximum number of Pods that wait at the same time. It is limited because the request body of each waiting Pod stays in
 * memory.
 */
const MAX_WAITING = 256;

/** For each cache, the functions that end the waits that are in progress, in the order in which the waits began. */
const waits = new WeakMap<RegistryContext['cache'], Set<() => void>>();

/**
 * Resolves to the ServiceAccount as soon as it exists, or to undefined after 2 s. If more than 256 Pods wait, the longest wait
 * ends immediately with undefined, because the memory for request bodies is limited: large bodies of other requests would have to
 * wait.
 */
export function awaitServiceAccount(
  { cache, timers }: RegistryContext,
  namespace: string,
  name: string,
): Promise<ServiceAccount | undefined> {
  const key = objectKey(SERVICE_ACCOUNTS_PREFIX, namespace, name);
  const find = (): ServiceAccount | undefined => cache.get(key) as ServiceAccount | undefined;
  const found = find();
  if (found !== undefined) return Promise.resolve(found);
  const waiting = waits.get(cache) ?? new Set();
  waits.set(cache, waiting);
  return new Promise((resolve) => {
    const settle = (): void => {
      waiting.delete(settle);
      unsubscribe();
      timer.cancel();
      resolve(find());
    };
    const unsubscribe = cache.subscribe(SERVICE_ACCOUNTS_PREFIX, namespace, cache.revision(), () => {
      if (find() !== undefined) settle();
    });
    const timer = timers.at(timers.now() + WAIT_MILLIS, settle);
    waiting.add(settle);
    const [longest] = waiting;
    if (waiting.size > MAX_WAITING) longest?.();
  });
}
