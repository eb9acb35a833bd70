/** Explains troubles of the node of a Pod: it does not exist, is not ready, or has NoExecute taints that evict the Pod. Pure. */
import type { Node, Taint } from '../../api/generated/types.ts';
import { formatDuration, parseTime } from '../../machinery/time.ts';
import { limitedStays } from '../../scheduling/node-taints.ts';
import {
  type Action,
  clock,
  conditionOf,
  type Explanation,
  inTime,
  type Living,
  oneLine,
  type Subject,
  seeStatus,
  shownContainers,
} from './subject.ts';

/** Returns the taint in the notation of kubectl taint, such as `repair=disk:NoExecute`. */
export const taintText = ({ key, value, effect }: Taint): string => `${key}${value ? `=${value}` : ''}:${effect}`;

/** Returns the action to remove the taint from the node. */
export const removeTaint = ({ hints }: Subject, node: Node, taint: Taint): Action => ({
  description: 'remove the taint from the node',
  command: hints.kubectl(`taint node ${node.metadata.name} ${taintText(taint)}-`),
});

export const tolerate: Action = {
  description: 'give the Pod a toleration for the taint (spec.tolerations), and recreate the Pod',
};

/** Returns the taint that evicts the Pod soonest, and after how many seconds; undefined if there is no such taint. */
export function evictingTaint({ pod, node }: Living): { node: Node; taint: Taint; seconds: number } | undefined {
  const [first] = limitedStays(pod, node?.spec?.taints ?? []).sort((a, b) => a.seconds - b.seconds);
  return first === undefined || node === undefined ? undefined : { node, ...first };
}

/** Explains a Pod that has not started because its node does not exist or is not ready; undefined for other Pods. */
export function explainNode(subject: Living): Explanation | undefined {
  const { name, pod, node, nodes, hints } = subject;
  const { nodeName } = pod.spec ?? {};
  if (!nodeName || pod.status?.startTime !== undefined) return undefined;
  if (nodes?.length === 0)
    return {
      sentence: `${name} cannot start: its node ${nodeName} does not exist.`,
      evidence: [`spec.nodeName is ${nodeName}`, 'a Pod of a missing node is deleted after some time'],
      actions: [
        { description: 'omit spec.nodeName, so that the scheduler chooses a node, and recreate the Pod' },
        { description: 'see which nodes exist', command: hints.kubectl('get nodes') },
      ],
    };
  const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True') return undefined;
  return {
    sentence: `${name} waits: its node ${nodeName} is not ready, ${oneLine(ready.message) || ready.reason}.`,
    evidence: [`condition Ready of the node is ${ready.status} (${ready.reason})`],
    actions: [seeStatus(subject, 'see why the node is not ready')],
  };
}

/** Explains a Pod that has started, and that counts as not ready only because its node is not ready; undefined for other Pods. */
export function explainLostNode(subject: Living): Explanation | undefined {
  const { name, pod, node } = subject;
  const ofNode = node?.status?.conditions?.find(({ type }) => type === 'Ready');
  const isWell = shownContainers(subject).every(({ kind, status }) => kind !== 'app' || status.ready);
  if (ofNode === undefined || ofNode.status === 'True' || conditionOf(subject, 'Ready')?.status !== 'False' || !isWell)
    return undefined;
  const cause = `its node ${pod.spec?.nodeName} ${ofNode.status === 'Unknown' ? 'does not answer' : 'is not ready'}`;
  return {
    sentence: `${name} is not ready: ${cause}, ${oneLine(ofNode.message) || ofNode.reason}.`,
    evidence: [
      `condition Ready of the node is ${ofNode.status} (${ofNode.reason})`,
      'its containers were ready when the node reported them last',
    ],
    actions: [seeStatus(subject, 'see why the node is not ready')],
  };
}

/**
 * Explains a running Pod that will be evicted, because it tolerates a NoExecute taint of its node for a limited time only; undefined if the
 * node has no such taint.
 */
export function explainTaint(subject: Living): Explanation | undefined {
  const { name, now } = subject;
  const found = evictingTaint(subject);
  if (found === undefined) return undefined;
  const { node, taint, seconds } = found;
  const since = parseTime(taint.timeAdded);
  const at = since === undefined ? undefined : since + seconds * 1000;
  const when =
    at === undefined ? `after ${formatDuration(seconds * 1000)}` : `at about ${clock(at)} (${inTime(at, now)})`;
  return {
    sentence: `${name} will be evicted ${when}: its node ${node.metadata.name} has the taint ${taintText(taint)}, which it tolerates for ${formatDuration(seconds * 1000)} only.`,
    evidence: [`node ${node.metadata.name} has the taint ${taintText(taint)}`],
    actions: [removeTaint(subject, node, taint), tolerate],
  };
}
