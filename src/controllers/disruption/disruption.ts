/**
 * Keeps the status of each PodDisruptionBudget: how many of its Pods are healthy, and how many may be evicted now.
 *
 * Boundary: the API server refuses evictions (src/apiserver/registry/evictions); it subtracts each allowed eviction from disruptionsAllowed
 * in the status and records the eviction in disruptedPods.
 * Reads: poddisruptionbudgets, pods, and the objects of all kinds with the subresource scale. Writes: the status of poddisruptionbudgets,
 * the condition DisruptionTarget of Pods that were not deleted after all, events.
 * Invariants:
 *  1. A status is written only if the budget has not changed since it was read, so that no recorded eviction is lost.
 *  2. An evicted Pod counts as disrupted until the informer's cache shows its deletion, at most for two minutes.
 *  3. While the number of expected Pods is not known, no disruption is allowed.
 * Source: pkg/controller/disruption of v1.33 (behavior, reasons and wording).
 */
import type { KindCatalog } from '../../api/catalog.ts';
import type { Pod, PodDisruptionBudget } from '../../api/generated/types.ts';
import { POD_DISRUPTION_BUDGETS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { ControllerOptions } from '../controller.ts';
import { createWakes } from '../wakes.ts';
import { carryOut } from './carry-out.ts';
import { followBudgets } from './follow-budgets.ts';
import { followOwnerScales } from './owner-scales.ts';
import { reconcile } from './reconcile.ts';
import { startStaleConditions } from './stale-conditions.ts';

export interface DisruptionOptions extends ControllerOptions {
  catalog: KindCatalog;
}

/** Resolves once the controller has read the budgets, the Pods and their owners. */
export async function startDisruption(options: DisruptionOptions): Promise<void> {
  const { client, catalog, informers, timers, log, signal } = options;
  const events = createEventRecorder(client, { component: 'controllermanager', timers, log, signal });
  const queue = createWorkQueue({ name: 'disruption', process, log, timers, signal });
  const wakes = createWakes(timers, signal, queue.add);
  const ambiguous = (pod: Pod, found: readonly PodDisruptionBudget[]): void => {
    const { namespace, name } = pod.metadata;
    const text = `Pod "${namespace}"/"${name}" matches multiple PodDisruptionBudgets.  Chose "${found[0]?.metadata.name}" arbitrarily.`;
    events.event(pod, 'Warning', 'MultiplePodDisruptionBudgets', text);
  };
  const followed = followBudgets(options, { changed: queue.add, deleted: wakes.cancel, ambiguous });
  const { budgets, pods } = followed;
  const scales = followOwnerScales({
    informers,
    catalog,
    signal,
    changed: (uid) => followed.ownersChanged(scales.withOwned(uid)),
    kindsChanged: followed.allChanged,
  });
  const writer = { client: client.resource<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS), budgets, events };
  const synced = Promise.all([budgets.synced, pods.synced]);

  async function process(key: string): Promise<void> {
    await Promise.all([synced, scales.synced()]);
    const [namespace, name] = key.split('/') as [string, string];
    const budget = budgets.get(namespace, name);
    if (budget === undefined) return;
    const { scaleOf } = scales;
    const decision = reconcile({ budget, pods: followed.podsOf(budget), scaleOf, now: timers.now() });
    await carryOut(writer, budget, decision);
    wakes.set(key, decision.recheckAt);
  }

  await Promise.all([synced, scales.synced(), startStaleConditions(options)]);
}
