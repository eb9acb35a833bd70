/**
 * Computes the conditions of a node whose agent is silent, and of its Pods. The functions are pure.
 * Source: tryUpdateNodeHealth in pkg/controller/nodelifecycle of v1.33 (conditions, reasons, messages).
 */
import type { Node, NodeCondition, Pod, PodCondition } from '../../api/generated/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

/** The conditions that only the node's agent knows. */
const REPORTED_BY_AGENT = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

/** Returns the conditions to write; an empty list if all are Unknown already. */
export function unknownConditions({ metadata, status }: Node, now: Millis): NodeCondition[] {
  const lastTransitionTime = formatTime(now);
  return REPORTED_BY_AGENT.flatMap((type): NodeCondition[] => {
    const present = status?.conditions?.find((each) => each.type === type);
    if (present?.status === 'Unknown') return [];
    const why =
      present === undefined
        ? {
            reason: 'NodeStatusNeverUpdated',
            message: 'Kubelet never posted node status.',
            lastHeartbeatTime: metadata.creationTimestamp ?? lastTransitionTime,
          }
        : { reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' };
    return [{ type, status: 'Unknown', lastTransitionTime, ...why }];
  });
}

/** Returns the Ready condition to write; undefined if the Pod is not Ready. */
export function notReadyCondition({ status }: Pod, now: Millis): PodCondition | undefined {
  const isReady = status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True');
  return isReady ? { type: 'Ready', status: 'False', lastTransitionTime: formatTime(now) } : undefined;
}
