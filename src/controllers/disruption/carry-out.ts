import { isDeepStrictEqual } from 'node:util';
import type { PodDisruptionBudget } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Decision } from './reconcile.ts';

export interface BudgetWriter {
  client: ResourceClient<PodDisruptionBudget>;
  budgets: Informer<PodDisruptionBudget>;
  events: EventRecorder;
}

/**
 * Sends the Events and writes the status. Resolves once the informer's cache contains the status. Writes no status if the budget has
 * changed since it was read, for example by an eviction: the change queues the budget again.
 */
export async function carryOut(
  { client, budgets, events }: BudgetWriter,
  budget: PodDisruptionBudget,
  { status, events: drafts }: Decision,
): Promise<void> {
  for (const { object, type, reason, message } of drafts) events.event(object, type, reason, message);
  if (isDeepStrictEqual(budget.status, status)) return;
  try {
    const { metadata } = await client.updateStatus({ ...budget, status });
    await budgets.reached(metadata.resourceVersion);
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
  }
}
