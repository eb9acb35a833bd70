/**
 * Whether a Pod counts as healthy for a PodDisruptionBudget.
 * Source: the eviction subresource and the disruption controller of v1.33 (behavior); the specification of defer containers, "Workloads".
 */
import type { Pod } from '../../../../generated/types.ts';

/** Whether the Pod is being deleted, or its termination has begun for another reason, such as its completion. */
export const isTerminating = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp !== undefined || status?.phase === 'Terminating' || status?.termination !== undefined;

export const isHealthy = (pod: Pod): boolean =>
  !isTerminating(pod) &&
  (pod.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');
