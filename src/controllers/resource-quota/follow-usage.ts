/** Follows the resources that quotas limit, and reports updates and deletes that change the usage. */
import { evaluatorOf } from '../../api/core/v1/resource-quota/usage/evaluators.ts';
import { changesUsage } from '../../api/core/v1/resource-quota/usage/recount.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { ControllerOptions } from '../controller.ts';

export interface UsageFollower {
  /** Resolves once changes of these resources are reported. */
  follow(resources: readonly ResourceRef[]): Promise<void>;
  /** Stops following all other resources. */
  keepOnly(resources: readonly ResourceRef[]): void;
}

const keyOf = ({ group, version, resource }: ResourceRef): string => `${group}/${version}/${resource}`;

/**
 * Calls `changed` for each update or delete that changes the usage. Ignores creates, because the admission plugin adds them to the usage.
 */
export function followUsage(
  { informers, timers, signal }: Pick<ControllerOptions, 'informers' | 'timers' | 'signal'>,
  changed: (ref: ResourceRef, namespace: string) => void,
): UsageFollower {
  const followed = new Map<string, { stop: AbortController; synced: Promise<void> }>();
  onAbort(signal, () => {
    for (const { stop } of followed.values()) stop.abort();
  });

  function begin(ref: ResourceRef): { stop: AbortController; synced: Promise<void> } {
    const stop = new AbortController();
    const evaluator = evaluatorOf(ref.group, ref.resource);
    const report = ({ metadata }: KubeObject): void => changed(ref, metadata.namespace ?? '');
    const { synced } = informers.follow<KubeObject>(
      ref,
      { signal: stop.signal },
      {
        updated(object, old) {
          if (changesUsage(evaluator, object, old, timers.now())) report(object);
        },
        deleted: report,
      },
    );
    return { stop, synced };
  }

  return {
    async follow(resources) {
      for (const ref of resources)
        if (!signal.aborted && !followed.has(keyOf(ref))) followed.set(keyOf(ref), begin(ref));
      await Promise.all(resources.map((ref) => followed.get(keyOf(ref))?.synced));
    },
    keepOnly(resources) {
      const kept = new Set(resources.map(keyOf));
      for (const [key, { stop }] of [...followed]) {
        if (kept.has(key)) continue;
        stop.abort();
        followed.delete(key);
      }
    },
  };
}
