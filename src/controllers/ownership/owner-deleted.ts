/**
 * Builds the condition DeletionReason, which announces that a Pod is deleted together with its owner or its namespace. Only Pods with defer
 * containers get this condition.
 * Source: the specification of defer containers, "Workloads".
 */
import type { Pod, PodCondition } from '../../api/generated/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

const TYPE = 'DeletionReason';
const REASON = 'OwnerDeleted';

export const hasDeferContainers = ({ spec }: Pod): boolean => (spec?.deferContainers ?? []).length > 0;

/** Returns the condition. `message`: which component deletes the Pod, and why. */
export const ownerDeleted = (message: string, now: Millis): PodCondition => ({
  type: TYPE,
  status: 'True',
  reason: REASON,
  message,
  lastTransitionTime: formatTime(now),
});

/** Returns the condition that revokes the condition of ownerDeleted(), for a Pod that is not deleted after all. */
export const notDeleted = (message: string, now: Millis): PodCondition => ({
  ...ownerDeleted(message, now),
  status: 'False',
});

/** Whether the Pod has the condition of ownerDeleted() with this message, which identifies the component that deletes the Pod. */
export const isAnnounced = ({ status }: Pod, message: string): boolean =>
  (status?.conditions ?? []).some(
    (each) => each.type === TYPE && each.status === 'True' && each.reason === REASON && each.message === message,
  );
