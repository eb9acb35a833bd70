/**
 * The taints that follow from a node's state, and how long a Pod stays on a node that is tainted. Pure.
 * Source: "Taints and Tolerations" of the v1.33 documentation; pkg/controller/nodelifecycle, pkg/controller/tainteviction.
 */
import type { Node, Pod, Taint } from '../api/generated/types.ts';
import { tolerationFinder } from './requirements.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
export const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';

/** What the condition Ready says of a node that ends its Pods for a shutdown of the machine. Source: pkg/kubelet/nodeshutdown of v1.33. */
export const SHUTTING_DOWN = 'node is shutting down';

/** [condition, its status, key] */
const OF_CONDITIONS: readonly (readonly [type: string, status: string, key: string])[] = [
  ['Ready', 'False', NOT_READY],
  ['Ready', 'Unknown', UNREACHABLE],
  ['MemoryPressure', 'True', 'node.kubernetes.io/memory-pressure'],
  ['DiskPressure', 'True', 'node.kubernetes.io/disk-pressure'],
  ['PIDPressure', 'True', 'node.kubernetes.io/pid-pressure'],
];

/** Keys of taints with the effect NoSchedule that are nobody else's to set. */
export const STATE_KEYS: readonly string[] = [...OF_CONDITIONS.map(([, , key]) => key), UNSCHEDULABLE];

/** Of them those that also drive Pods away, with the effect NoExecute, of a node that stays so. */
export const EVICTING_KEYS: readonly string[] = [NOT_READY, UNREACHABLE];

/** Those of them that the node is to have. */
export const stateKeys = ({ spec, status }: Node): string[] => [
  ...OF_CONDITIONS.filter(([type, state]) =>
    status?.conditions?.some((each) => each.type === type && each.status === state),
  ).map(([, , key]) => key),
  ...(spec?.unschedulable === true ? [UNSCHEDULABLE] : []),
];

/** For how many seconds the Pod stays on a node with these taints; undefined: for good. */
export function staysForSeconds(pod: Pod, taints: readonly Taint[]): number | undefined {
  const tolerationOf = tolerationFinder(pod);
  let seconds = Number.POSITIVE_INFINITY;
  for (const taint of taints.filter(({ effect }) => effect === 'NoExecute')) {
    const toleration = tolerationOf(taint);
    if (toleration === undefined) return 0;
    seconds = Math.min(seconds, Math.max(0, toleration.tolerationSeconds ?? Number.POSITIVE_INFINITY));
  }
  return seconds === Number.POSITIVE_INFINITY ? undefined : seconds;
}
