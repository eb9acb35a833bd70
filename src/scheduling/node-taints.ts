/**
 * Determines the taints that follow from a node's state, and how long a Pod may stay on a tainted node. The functions are pure.
 * Source: "Taints and Tolerations" of the v1.33 documentation; pkg/controller/nodelifecycle, pkg/controller/tainteviction.
 */
import type { Node, Pod, Taint } from '../api/generated/types.ts';
import { tolerationFinder } from './requirements.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
export const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';

/**
 * The message of the Ready condition contains this text while the node terminates its Pods before a shutdown.
 * Source: pkg/kubelet/nodeshutdown of v1.33.
 */
export const SHUTTING_DOWN = 'node is shutting down';

/** A node whose condition `type` has this status gets a taint with this key. */
const CONDITION_TAINTS: readonly (readonly [type: string, status: string, key: string])[] = [
  ['Ready', 'False', NOT_READY],
  ['Ready', 'Unknown', UNREACHABLE],
  ['MemoryPressure', 'True', 'node.kubernetes.io/memory-pressure'],
  ['DiskPressure', 'True', 'node.kubernetes.io/disk-pressure'],
  ['NetworkUnavailable', 'True', 'node.kubernetes.io/network-unavailable'],
  ['PIDPressure', 'True', 'node.kubernetes.io/pid-pressure'],
];

/** The keys of the NoSchedule taints that lifepod adds and removes. */
export const STATE_KEYS: readonly string[] = [...CONDITION_TAINTS.map(([, , key]) => key), UNSCHEDULABLE];

/** The keys for which the node also gets a NoExecute taint if its state persists. */
export const EVICTING_KEYS: readonly string[] = [NOT_READY, UNREACHABLE];

/** Returns the STATE_KEYS that the node's current state requires. */
export const stateKeys = ({ spec, status }: Node): string[] => [
  ...CONDITION_TAINTS.filter(([type, state]) =>
    status?.conditions?.some((each) => each.type === type && each.status === state),
  ).map(([, , key]) => key),
  ...(spec?.unschedulable === true ? [UNSCHEDULABLE] : []),
];

export interface LimitedStay {
  taint: Taint;
  /** How long the Pod tolerates the taint. */
  seconds: number;
}

/**
 * Returns the NoExecute taints that the Pod does not tolerate forever. If a taint is not tolerated at all, returns only the first such
 * taint, with 0 seconds.
 */
export function limitedStays(pod: Pod, taints: readonly Taint[]): LimitedStay[] {
  const tolerationOf = tolerationFinder(pod);
  const limited: LimitedStay[] = [];
  for (const taint of taints.filter(({ effect }) => effect === 'NoExecute')) {
    const toleration = tolerationOf(taint);
    if (toleration === undefined) return [{ taint, seconds: 0 }];
    const { tolerationSeconds } = toleration;
    if (tolerationSeconds !== undefined) limited.push({ taint, seconds: Math.max(0, tolerationSeconds) });
  }
  return limited;
}
