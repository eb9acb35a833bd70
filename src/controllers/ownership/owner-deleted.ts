/**
 * Builds the condition DeletionReason, which announces that a Pod is deleted with its owner or namespace. Only Pods with defer containers
 * get this condition.
 * Source: the specification of defer containers, "Workloads".
 */
import type { Pod, PodCondition } from '../../api/generated/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

const TYPE = 'DeletionReason';
const REASON = 'OwnerDeleted';

export const hasDeferContainers = ({ spec }: Pod): boolean => (spec?.deferContainers ?? []).length > 0;

/** `message`: which component deletes the Pod, and why. */
export const ownerDeleted = (message: string, now: Millis): PodCondition => ({
  type: TYPE,
  status: 'True',
  reason: REASON,
  message,
  lastTransitionTime: formatTime(now),
});

/** Returns the condition for a Pod that is not deleted after all. */
export const notDeleted = (message: string, now: Millis): PodCondition => ({
  ...ownerDeleted(message, now),
  status: 'False',
});

/** Whether the condition announces that a component deletes the Pod. `message` identifies the component. */
export const isAnnounced = ({ status }: Pod, message: string): boolean =>
  (status?.conditions ?? []).some(
    (each) => each.type === TYPE && each.status === 'True' && each.reason === REASON && each.message === message,
  );
