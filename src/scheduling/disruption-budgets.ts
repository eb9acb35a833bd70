/**
 * Finds the Pods whose deletion by a preemption would violate a PodDisruptionBudget. The functions are pure.
 * Source: filterPodsWithPDBViolation of the plugin DefaultPreemption of v1.33 (behavior).
 */
import type { Pod, PodDisruptionBudget } from '../api/generated/types.ts';
import { selectsPod, statusOf } from '../api/policy/v1/pod-disruption-budget/budget-status.ts';

/** Returns the Pods whose deletion would violate a budget, if the Pods before them in the list are deleted as well. */
export function violating(pods: readonly Pod[], budgets: readonly PodDisruptionBudget[]): ReadonlySet<Pod> {
  const allowed = new Map(budgets.map((budget) => [budget, statusOf(budget).disruptionsAllowed]));
  const found = new Set<Pod>();
  for (const pod of pods) {
    for (const budget of budgets) {
      // The budget already counts an evicted Pod as disrupted.
      if (!selectsPod(budget, pod) || statusOf(budget).disruptedPods?.[pod.metadata.name] !== undefined) continue;
      const left = (allowed.get(budget) ?? 0) - 1;
      allowed.set(budget, left);
      if (left < 0) found.add(pod);
    }
  }
  return found;
}
