/**
 * Keeps the status of ResourceQuotas: counts the usage when a quota is created or changed, and when an update, a delete or the passage of
 * time changes the usage. The admission plugin ResourceQuota adds new objects to the usage in the transaction of their creation.
 *
 * Reads: resourcequotas, and the objects of the resources that quotas limit (events from informers; counted with lists).
 * Writes: the status of resourcequotas.
 * Invariants:
 *  1. The quota is read before its objects are listed, and the write of its status fails if the quota has changed since. The plugin changes
 *     the quota in the transaction of a create, so no count misses an object.
 *  2. Only resources that a quota limits are followed.
 * Source: pkg/controller/resourcequota of v1.33 (behavior), except that upstream also counts periodically.
 */
import { evaluatorOf } from '../../api/core/v1/resource-quota/usage/evaluators.ts';
import {
  announcedStatus,
  type Counted,
  limits,
  needsRecount,
  recount,
} from '../../api/core/v1/resource-quota/usage/recount.ts';
import type { ResourceQuota, ResourceQuotaStatus } from '../../api/generated/types.ts';
import { RESOURCE_QUOTAS } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { createWakes } from '../wakes.ts';
import { followUsage } from './follow-usage.ts';

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;
const namespaceOf = ({ metadata }: ResourceQuota): readonly string[] => [metadata.namespace ?? ''];

export interface ResourceQuotaOptions extends ControllerOptions {
  /** Returns the resources that quotas can count. The result may change while the controller runs. */
  resources: () => readonly ResourceRef[];
}

/** Resolves once the controller has read the quotas. */
export async function startResourceQuotas(options: ResourceQuotaOptions): Promise<void> {
  const { client, informers, timers, log, signal, resources } = options;
  const quotaClient = client.resource<ResourceQuota>(RESOURCE_QUOTAS);
  const queue = createWorkQueue({ name: 'resource-quota', process, log, timers, signal });
  const wakes = createWakes(timers, signal, queue.add);
  const usage = followUsage(options, ({ group, resource }, namespace) => {
    const evaluator = evaluatorOf(group, resource);
    for (const quota of quotas.by(namespaceOf, namespace)) if (limits(quota, evaluator)) queue.add(keyOf(quota));
  });
  const limited = (quota: ResourceQuota): ResourceRef[] =>
    resources().filter(({ group, resource }) => limits(quota, evaluatorOf(group, resource)));
  const quotas = informers.follow<ResourceQuota>(
    RESOURCE_QUOTAS,
    { signal },
    {
      added: (quota) => queue.add(keyOf(quota)),
      updated(quota, old) {
        if (needsRecount(quota, old)) queue.add(keyOf(quota));
      },
      deleted(quota) {
        wakes.cancel(keyOf(quota));
        usage.keepOnly(quotas.list().flatMap(limited));
      },
    },
  );

  async function process(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    try {
      let quota = await quotaClient.get(name, namespace);
      await usage.follow(limited(quota));
      const announced = announcedStatus(quota);
      if (announced !== undefined) {
        quota = await writeStatus(quota, announced);
        await quotas.reached(quota.metadata.resourceVersion);
      }
      const counted = await Promise.all(limited(quota).map((ref) => listed(ref, namespace)));
      const { status, changesAt } = recount(quota, counted, timers.now());
      if (status !== undefined) await writeStatus(quota, status);
      // Creates that did not see the announced limits precede this write, so the next count contains them.
      if (announced !== undefined) queue.add(key);
      usage.keepOnly(quotas.list().flatMap(limited));
      wakes.set(key, changesAt);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      if (!isApiError(error, 'Conflict')) throw error;
      queue.add(key);
    }
  }

  const writeStatus = (quota: ResourceQuota, status: ResourceQuotaStatus): Promise<ResourceQuota> =>
    quotaClient.updateStatus({ ...quota, status });

  async function listed(ref: ResourceRef, namespace: string): Promise<Counted> {
    const { items } = await client.resource(ref).list({ namespace });
    return { evaluator: evaluatorOf(ref.group, ref.resource), objects: items };
  }

  await quotas.synced;
}
