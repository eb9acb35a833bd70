/**
 * Finds the PodDisruptionBudgets that must be reconciled after a change of a budget, a Pod or the scale of an owner.
 * Source: the event handlers of pkg/controller/disruption/disruption.go of v1.33 (behavior). Upstream updates only one of several budgets
 * that select a Pod, and none when an owner is scaled.
 */
import { isDeepStrictEqual } from 'node:util';
import { isHealthy, isTerminating } from '../../api/core/v1/pod/status/healthy.ts';
import type { Pod, PodDisruptionBudget } from '../../api/generated/types.ts';
import { selectsPod } from '../../api/policy/v1/pod-disruption-budget/budget-status.ts';
import { POD_DISRUPTION_BUDGETS, PODS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { controllerOf, controllerUids } from '../ownership/owner.ts';

export interface BudgetHandlers {
  /** Called with the key of each budget that must be reconciled: its namespace, `/` and its name. */
  changed(key: string): void;
  deleted(key: string): void;
  /** Called for a new Pod that several budgets select. */
  ambiguous(pod: Pod, budgets: readonly PodDisruptionBudget[]): void;
}

export interface FollowedBudgets {
  budgets: Informer<PodDisruptionBudget>;
  pods: Informer<Pod>;
  /** Returns the Pods that the budget selects, by name. */
  podsOf(budget: PodDisruptionBudget): Pod[];
  ownersChanged(uids: readonly string[]): void;
  allChanged(): void;
}

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;
const namespaceOf = ({ metadata }: KubeObject): readonly string[] => [metadata.namespace ?? ''];

const isRelevant = (pod: Pod, old: Pod): boolean =>
  isHealthy(pod) !== isHealthy(old) ||
  isTerminating(pod) !== isTerminating(old) ||
  controllerOf(pod)?.uid !== controllerOf(old)?.uid ||
  !isDeepStrictEqual(pod.metadata.labels, old.metadata.labels);

export function followBudgets(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  { changed, deleted, ambiguous }: BudgetHandlers,
): FollowedBudgets {
  const budgetChanged = (budget: PodDisruptionBudget): void => changed(keyOf(budget));
  const budgets = informers.follow<PodDisruptionBudget>(
    POD_DISRUPTION_BUDGETS,
    { signal },
    { added: budgetChanged, updated: budgetChanged, deleted: (budget) => deleted(keyOf(budget)) },
  );
  const budgetsOf = (pod: Pod): PodDisruptionBudget[] =>
    [...budgets.by(namespaceOf, pod.metadata.namespace ?? '')].filter((budget) => selectsPod(budget, pod));
  const podChanged = (pod: Pod): void => budgetsOf(pod).forEach(budgetChanged);
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      added(pod) {
        const found = budgetsOf(pod);
        found.forEach(budgetChanged);
        if (found.length > 1) ambiguous(pod, found);
      },
      updated(pod, old) {
        const hasNone = budgets.by(namespaceOf, pod.metadata.namespace ?? '').size === 0;
        if (hasNone || !isRelevant(pod, old)) return;
        podChanged(pod);
        podChanged(old);
      },
      deleted: podChanged,
    },
  );
  return {
    budgets,
    pods,
    podsOf(budget) {
      const selected = [...pods.by(namespaceOf, budget.metadata.namespace ?? '')].filter((pod) =>
        selectsPod(budget, pod),
      );
      return selected.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    },
    ownersChanged(uids) {
      for (const uid of uids) for (const pod of pods.by(controllerUids, uid)) podChanged(pod);
    },
    allChanged: () => budgets.list().forEach(budgetChanged),
  };
}
