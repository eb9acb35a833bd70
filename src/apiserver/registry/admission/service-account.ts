/** The ServiceAccount of a new Pod, which may come a moment later than the Pod's namespace. */
import type { ServiceAccount } from '../../../api/generated/types.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import type { RegistryContext } from '../context.ts';

const SERVICE_ACCOUNTS_PREFIX = resourcePrefix('', 'serviceaccounts');
/** How long a new Pod waits for its ServiceAccount: a new namespace gets one a moment later. */
const WAIT_MILLIS = 2000;
/** How many Pods wait at a time. Each keeps its request. */
const MAX_WAITING = 256;

/** The functions that end the waits, by cache: that of the longest wait first. */
const waits = new WeakMap<RegistryContext['cache'], Set<() => void>>();

/**
 * Resolves to the ServiceAccount once it is there, to undefined where it does not come within 2 s. The longest wait of more than 256
 * ends at once: Pods without ServiceAccounts do not hold up other requests.
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
