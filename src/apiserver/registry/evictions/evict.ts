/**
 * Evicts Pods: checks the PodDisruptionBudgets (judge.ts), adds the condition DisruptionTarget to the Pod, and deletes the Pod.
 *
 * Invariants:
 *  1. One transaction writes the condition and charges the budget. It fails if the Pod or the budget has changed since judge() saw them.
 *     Therefore, concurrent evictions never take more than a budget allows, even through several API servers on one store.
 *  2. If the budget is not charged because the Pod is not ready, the Pod is deleted only if it has not changed since judge() saw it.
 * Source: pkg/registry/core/pod/storage/eviction.go of v1.33 (behavior and wording), which charges the budget before it adds the condition.
 */
import type { Eviction, Pod, PodDisruptionBudget } from '../../../api/generated/types.ts';
import type { SubresourceDefinition } from '../../../api/kind.ts';
import { POD_DISRUPTION_BUDGETS } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { badRequest, isApiError } from '../../../machinery/status.ts';
import type { WriteOptions } from '../../../ports/backend.ts';
import type { Alongside } from '../../admission/plugin.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import { revisionOf } from '../../cache/stored-object.ts';
import type { RegistryContext, Sent } from '../context.ts';
import { checkPreconditions, deleteObject } from '../delete.ts';
import { propagationPolicyOf } from '../propagation.ts';
import type { Resource } from '../resources.ts';
import { judge, type Verdict } from './judge.ts';

const BUDGETS = resourcePrefix(POD_DISRUPTION_BUDGETS.group, POD_DISRUPTION_BUDGETS.resource);

/** How often judge() decides about a Pod that keeps changing before its deletion. Source: EvictionsRetry of v1.33. */
const MAX_ATTEMPTS = 20;

/** `alongside` is called after `apply`, and returns the changes of other objects. */
export interface PodChange {
  apply: NonNullable<SubresourceDefinition['apply']>;
  alongside(): Alongside[];
  dryRun: boolean;
}

export interface EvictionRequest {
  resource: Resource;
  namespace: string | undefined;
  name: string;
  eviction: Eviction;
  options: Sent<WriteOptions>;
  mark: NonNullable<SubresourceDefinition['apply']>;
  change(change: PodChange): Promise<KubeObject>;
}

/**
 * In a dry run, only checks whether the eviction is allowed. Rejects with 400 BadRequest if the Eviction has another name than the Pod, 404
 * NotFound if the Pod does not exist, 409 Conflict if the Pod does not match the preconditions, and with the errors of judge().
 */
export async function evict(context: RegistryContext, request: EvictionRequest): Promise<void> {
  const { resource, namespace, name, eviction, options } = request;
  if (eviction.metadata?.name !== name) throw badRequest('name in URL does not match name in Eviction object');
  const { gracePeriodSeconds, preconditions, dryRun } = eviction.deleteOptions ?? {};
  const isDryRun = options.dryRun === true || (dryRun ?? []).length > 0;
  const propagationPolicy = propagationPolicyOf(eviction.deleteOptions ?? {});
  const deletion = { dryRun: isDryRun, gracePeriodSeconds, propagationPolicy, request: options.request };
  const isPinned = preconditions?.resourceVersion !== undefined;
  let { uid } = preconditions ?? {};
  for (let attempt = 1; ; attempt++) {
    const { pod, verdict } = await mark(context, request, { ...preconditions, uid }, isDryRun);
    // Compare the uid from now on, so that a new Pod of the same name is not evicted.
    uid = pod.metadata.uid ?? '';
    const { resourceVersion } = pod.metadata;
    const state = isPinned || verdict.isProvisional ? { uid, resourceVersion } : { uid };
    try {
      const at = { namespace, name };
      await deleteObject(context, resource, at, { ...deletion, preconditions: state, isAdmitted: true });
      return;
    } catch (error) {
      if (isPinned || !verdict.isProvisional || !isApiError(error, 'Conflict')) throw error;
      if (verdict.ifChanged !== undefined) throw verdict.ifChanged;
      if (attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function mark(
  context: RegistryContext,
  { resource, namespace, mark: withCondition, change }: EvictionRequest,
  preconditions: { uid?: string; resourceVersion?: string },
  dryRun: boolean,
): Promise<{ pod: KubeObject; verdict: Verdict }> {
  let verdict: Verdict = { isProvisional: false };
  const pod = await change({
    dryRun,
    apply(old, ...more) {
      checkPreconditions(resource, old.metadata, { preconditions });
      const budgets = context.cache.list(BUDGETS, namespace) as PodDisruptionBudget[];
      verdict = judge(old as Pod, budgets, context.timers.now());
      return withCondition(old, ...more);
    },
    alongside() {
      const { charged } = verdict;
      if (charged === undefined) return [];
      const key = objectKey(BUDGETS, namespace, charged.metadata.name);
      return [{ key, modRevision: revisionOf(charged), object: charged }];
    },
  });
  return { pod, verdict };
}
