/**
 * The condition DeletionReason, which announces that a Pod is deleted together with its owner or its namespace. Only Pods with defer
 * containers get it.
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

/** The condition of a Pod that is not deleted after all. */
export const notDeleted = (message: string, now: Millis): PodCondition => ({
  ...ownerDeleted(message, now),
  status: 'False',
});

/** Whether the component with the message has announced the deletion of the Pod. */
export const isAnnounced = ({ status }: Pod, message: string): boolean =>
  (status?.conditions ?? []).some(
    (each) => each.type === TYPE && each.status === 'True' && each.reason === REASON && each.message === message,
  );
