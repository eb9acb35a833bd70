/** The status as a strategic merge patch: it says nothing of what others have to say. */
import type { Pod, PodCondition, PodStatus } from '../../api/generated/types.ts';
import { isNodeCondition } from '../../lifecycle/conditions.ts';

/** Conditions of others stay as they are by now, what the node no longer says goes. `pod` may be older than what is stored. */
export function statusPatch(pod: Pod, status: PodStatus): Record<string, unknown> {
  const gone = Object.keys(pod.status ?? {}).filter((key) => !(key in status));
  return {
    ...Object.fromEntries(gone.map((key) => [key, null])),
    ...status,
    conditions: status.conditions?.filter(isNodeCondition).map(wholeCondition),
    podIPs: replaced(status.podIPs),
    hostIPs: replaced(status.hostIPs),
  };
}

const replaced = (list: object[] | undefined): object[] | undefined =>
  list === undefined ? undefined : [{ $patch: 'replace' }, ...list];

/** Conditions are merged by their type: a reason that is left out would stay. */
const wholeCondition = ({ reason, message, ...rest }: PodCondition): Record<string, unknown> => ({
  ...rest,
  reason: reason ?? null,
  message: message ?? null,
});
