/** Explains troubles of the node of a Pod: it does not exist, is not ready, or has NoExecute taints that evict the Pod. Pure. */
import { readyCondition } from '../../api/core/v1/node/ready.ts';
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import { podSummary } from '../../api/core/v1/pod/status/summary.ts';
import type { Node, NodeCondition, Taint } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { formatDuration, type Millis, parseTime } from '../../machinery/time.ts';
import { shortCallError } from '../../runtime/error-text.ts';
import { limitedStays } from '../../scheduling/node-taints.ts';
import type { UnreportedNode } from '../service/engine-start.ts';
import {
  type Action,
  ago,
  called,
  clock,
  clockIn,
  conditionOf,
  type Explanation,
  forTime,
  type Living,
  oneLine,
  type Subject,
  seeStatus,
  shownContainers,
} from './subject.ts';

/** Returns the taint in the notation of kubectl taint, such as `repair=disk:NoExecute`. */
export const taintText = ({ key, value, effect }: Taint): string => `${key}${value ? `=${value}` : ''}:${effect}`;

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

interface DownRuntime {
  name: string;
  message: string;
  since: Millis | undefined;
}

const whyNotReady = ({ message, reason }: NodeCondition): string | undefined =>
  shortCallError(oneLine(message)) || reason;

/** Returns the trouble of a node that reports that its container runtime is down; undefined for other nodes. */
export function downRuntime(node: Node | undefined): DownRuntime | undefined {
  const ready = readyCondition(node);
  if (node === undefined || ready === undefined || ready.status === 'True') return undefined;
  if (!/container runtime is down/.test(ready.message ?? '')) return undefined;
  const message = shortCallError(oneLine(ready.message));
  return { name: node.metadata.name, message, since: parseTime(ready.lastTransitionTime) };
}

/** Returns the actions to start the machine's runtime and to read its log; none if the node's message does not name its socket. */
export function runtimeActions({ node, hints }: Subject): Action[] {
  const commands = hints.runtime(readyCondition(node)?.message ?? '');
  if (commands === undefined || downRuntime(node) === undefined) return [];
  return [
    { description: `start the container runtime of the node ${node?.metadata.name}`, command: commands.start },
    { description: 'read its log', command: commands.log },
  ];
}

const seeNode = (subject: Subject): Action[] => [
  ...runtimeActions(subject),
  seeStatus(subject, 'see why the node is not ready'),
];

function unreadyNode({ node }: Subject): string | undefined {
  const ready = readyCondition(node);
  if (ready === undefined || ready.status === 'True') return undefined;
  return `its node ${node?.metadata.name} ${ready.status === 'Unknown' ? 'does not answer' : 'is not ready'}, ${whyNotReady(ready)}`;
}

const nodeEvidence = (node: Node | undefined): string[] => {
  const ready = readyCondition(node);
  return ready === undefined ? [] : [`condition Ready of the node is ${ready.status} (${ready.reason})`];
};

/** Returns a clause such as `its node n has not reported its state since lifepod started 12.0s ago`. */
export const unreportedText = (nodeName: string, { startedAt }: UnreportedNode, now: Millis): string =>
  `its node ${nodeName} has not reported its state since lifepod started ${ago(startedAt, now)}`;

/** Returns when the newest fact about a Pod was reported by a node that has not reported since the start of its engine. */
export const asOf = ({ reportedAt }: UnreportedNode, steps: readonly Transition[]): Millis =>
  Math.max(reportedAt, ...steps.map(({ at }) => at));

/**
 * Explains a Pod whose state is that of a former engine. Running times and deadlines cannot be calculated from it: the containers may have
 * ended since, and the time in which no engine ran does not count towards grace periods. Returns undefined for a Pod that has ended,
 * because its state does not change any more.
 */
export function explainUnreported(subject: Living): Explanation | undefined {
  const { name, pod, node, unreported, transitions, now } = subject;
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  if (unreported === undefined || node === undefined) return undefined;
  if (isFinalPhase(pod.status?.phase) && !isDeleted) return undefined;
  const at = asOf(unreported, transitions);
  const ran = shownContainers(subject).filter(({ status }) => status.state?.running !== undefined);
  return {
    sentence: `${name} was ${podSummary(pod).status} as of ${clock(at)}, ${ago(at, now)}: ${unreportedText(node.metadata.name, unreported, now)}.`,
    evidence: [
      ...ran.map((shown) => `${called(shown)} was running`),
      ...(isDeleted || pod.status?.termination !== undefined
        ? ['the time until its node reports does not count towards its grace period']
        : []),
    ],
    actions: [{ description: 'wait until its node reports' }, seeStatus(subject, 'see whether its node is starting')],
  };
}

export function explainDownRuntime(subject: Living): Explanation | undefined {
  const { name, node, now } = subject;
  const down = downRuntime(node);
  const waits = shownContainers(subject).some(({ kind, status }) => kind !== 'defer' && status.state?.waiting);
  if (down === undefined || !waits) return undefined;
  const time = down.since === undefined ? '' : ` for ${forTime(down.since, now)}`;
  return {
    sentence: `${name} waits: its node ${down.name} has not been ready${time}, ${down.message}.`,
    evidence: nodeEvidence(node),
    actions: seeNode(subject),
  };
}

export function withUnreadyNode(subject: Living, explanation: Explanation): Explanation {
  const unready = unreadyNode(subject);
  if (unready === undefined) return explanation;
  return {
    sentence: `${explanation.sentence.replace(/\.$/, '')}, but ${unready}.`,
    evidence: [...explanation.evidence, ...nodeEvidence(subject.node)],
    actions: [...explanation.actions, ...seeNode(subject)],
  };
}

/** Explains a Pod that has not started because its node does not exist or is not ready. */
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
  const ready = readyCondition(node);
  if (ready === undefined || ready.status === 'True') return undefined;
  return {
    sentence: `${name} waits: its node ${nodeName} is not ready, ${whyNotReady(ready)}.`,
    evidence: nodeEvidence(node),
    actions: seeNode(subject),
  };
}

/** Explains a Pod whose containers are ready, but whose node is not. */
export function explainLostNode(subject: Living): Explanation | undefined {
  const { name, node } = subject;
  const unready = unreadyNode(subject);
  const isWell = shownContainers(subject).every(({ kind, status }) => kind !== 'app' || status.ready);
  if (unready === undefined || conditionOf(subject, 'Ready')?.status !== 'False' || !isWell) return undefined;
  return {
    sentence: `${name} is not ready: ${unready}.`,
    evidence: [...nodeEvidence(node), 'its containers were ready when the node reported them last'],
    actions: seeNode(subject),
  };
}

/** Explains a running Pod that will be evicted, because it tolerates a NoExecute taint of its node for a limited time. */
export function explainTaint(subject: Living): Explanation | undefined {
  const { name, now } = subject;
  const found = evictingTaint(subject);
  if (found === undefined) return undefined;
  const { node, taint, seconds } = found;
  const since = parseTime(taint.timeAdded);
  const at = since === undefined ? undefined : since + seconds * 1000;
  const when = at === undefined ? `after ${formatDuration(seconds * 1000)}` : `at about ${clockIn(at, now)}`;
  return {
    sentence: `${name} will be evicted ${when}: its node ${node.metadata.name} has the taint ${taintText(taint)}, which it tolerates for ${formatDuration(seconds * 1000)} only.`,
    evidence: [`node ${node.metadata.name} has the taint ${taintText(taint)}`],
    actions: [removeTaint(subject, node, taint), tolerate],
  };
}
