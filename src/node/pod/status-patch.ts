import type { Pod, PodCondition, PodStatus } from '../../api/generated/types.ts';
import { isNodeCondition } from '../../lifecycle/conditions.ts';

/**
 * Returns a strategic merge patch that writes `status`, removes the fields of `pod.status` that `status` lacks, and keeps the stored
 * conditions of other components, even if `pod` lacks them.
 */
export function statusPatch(pod: Pod, status: PodStatus): Record<string, unknown> {
  const removed = Object.keys(pod.status ?? {}).filter((key) => !(key in status));
  return {
    ...Object.fromEntries(removed.map((key) => [key, null])),
    ...status,
    conditions: status.conditions?.filter(isNodeCondition).map(wholeCondition),
    podIPs: replaced(status.podIPs),
    hostIPs: replaced(status.hostIPs),
  };
}

const replaced = (list: object[] | undefined): object[] | undefined =>
  list === undefined ? undefined : [{ $patch: 'replace' }, ...list];

/**
 * Returns the condition with null for an absent reason or message. The API merges conditions by type, so an omitted field would keep its
 * stored value.
 */
const wholeCondition = ({ reason, message, ...rest }: PodCondition): Record<string, unknown> => ({
  ...rest,
  reason: reason ?? null,
  message: message ?? null,
});
