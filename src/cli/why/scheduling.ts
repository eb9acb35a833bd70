/** Explains why a Pod is not scheduled. Pure. */
import { resourceQuantity } from '../../api/core/v1/pod/resources.ts';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { compareQuantities, type Quantity, zeroQuantity } from '../../machinery/quantity.ts';
import { hostPortsTakenBy } from '../../scheduling/host-ports.ts';
import { allocatableOf, wantedBy } from '../../scheduling/node-resources.ts';
import { claimNamesOf } from '../../scheduling/volume-claims.ts';
import { amountText } from './amounts.ts';
import { CLAIM_ADVICE, NO_VOLUME, UNBOUND, VOLUME_CONFLICT } from './needs/claim-advice.ts';
import { type UnboundFinding, unboundFinding } from './needs/claims.ts';
import { POD_RULE_ADVICE } from './needs/pod-rule-advice.ts';
import { preemptionOf, WAIT_FOR_ROOM } from './needs/preemption.ts';
import {
  type Action,
  type Advice,
  conditionLine,
  conditionOf,
  type Explanation,
  eventLine,
  eventOf,
  type Living,
  listed,
  nodeName,
  oneLine,
  say,
  seeStatus,
} from './subject.ts';

const DEFAULT_SCHEDULER = 'default-scheduler';

const describeNode =
  (description: string): Advice =>
  (subject) => ({ description, command: subject.hints.kubectl(`describe node ${nodeName(subject)}`) });

const uncordon: Advice = (subject) => ({
  description: 'the node is cordoned; make it schedulable',
  command: subject.hints.kubectl(`uncordon ${nodeName(subject)}`),
});

const NO_FREE_PORT = /free ports/;

/** Patterns for the scheduler's message, each with actions. The first pattern that matches is used. */
const ADVICE: readonly [RegExp, ...Advice[]][] = [
  [
    /Insufficient ([\w./-]+)/,
    say('lower the requests of its containers, or delete other Pods'),
    describeNode('see what is allocated'),
  ],
  // lifepod sets these taints again as long as the pressure lasts, so removing them does not help.
  [
    /taint \{node\.kubernetes\.io\/(disk|memory|pid)-pressure/,
    (subject) =>
      seeStatus(
        subject,
        'free the resource that the machine is short of, or start the engine with a lower threshold (--eviction-hard, --eviction-soft); see which resource it is',
      ),
  ],
  [/taint \{node\.kubernetes\.io\/unschedulable/, uncordon],
  [
    /taint \{node\.kubernetes\.io\/(not-ready|unreachable)/,
    (subject) => seeStatus(subject, 'see why the node is not ready'),
  ],
  [/untolerated taint|had taint/, taint],
  ...CLAIM_ADVICE,
  [
    /node affinity|node selector/i,
    (subject) => ({
      description: 'label a node as the Pod requires, or change its nodeSelector or affinity',
      command: subject.hints.kubectl(`label node ${nodeName(subject)} ${labelsOf(subject)}`),
    }),
  ],
  ...POD_RULE_ADVICE,
  [NO_FREE_PORT, say('another Pod uses the hostPort: delete it, or choose another port')],
  [/unschedulable/, uncordon],
  [/Too many pods/, say('the node is full: delete other Pods, or start the engine with a higher --max-pods')],
];

function taint(subject: Living): Action {
  const message = conditionOf(subject, 'PodScheduled')?.message ?? '';
  const [, key = ''] = /taint \{([^:}]+):/.exec(message) ?? [];
  return {
    description: 'give the Pod a toleration (spec.tolerations), or remove the taint from the node',
    command: subject.hints.kubectl(`taint node ${nodeName(subject)} ${key}-`),
  };
}

const labelsOf = ({ pod }: Living): string =>
  Object.entries(pod.spec?.nodeSelector ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(' ') || 'KEY=VALUE';

export function explainScheduling(subject: Living): Explanation | undefined {
  const { pod, name } = subject;
  if (pod.spec?.nodeName) return undefined;
  if ((pod.spec?.schedulingGates ?? []).length > 0) return gated(subject);
  const scheduler = pod.spec?.schedulerName ?? DEFAULT_SCHEDULER;
  const condition = conditionOf(subject, 'PodScheduled');
  const unbound = unboundClaims(subject);
  if (condition?.status !== 'False' && unbound !== undefined && scheduler === DEFAULT_SCHEDULER)
    return { sentence: `${name} is not scheduled yet: ${unbound.cause}.`, ...unbound };
  if (condition?.status !== 'False') {
    const foreign = scheduler !== DEFAULT_SCHEDULER;
    return {
      sentence: foreign
        ? `${name} is not scheduled: it requires the scheduler ${scheduler}, which has not handled it.`
        : `${name} is not scheduled yet: the scheduler has not handled it.`,
      evidence: [`spec.schedulerName is ${scheduler}`, ...conditionLine(condition)],
      actions: foreign
        ? [{ description: `start that scheduler, or omit spec.schedulerName to use ${DEFAULT_SCHEDULER}` }]
        : [{ description: 'wait a moment' }, seeStatus(subject, 'see whether the engine is healthy')],
    };
  }
  const message = oneLine(condition.message);
  const evidence = [...conditionLine(condition), ...eventLine(eventOf(subject, ['FailedScheduling']), subject)];
  const preemption = preemptionOf(subject);
  if (preemption !== undefined) {
    const { cause, due, actions } = preemption;
    return { sentence: `${name} is not scheduled yet: ${cause}${due}.`, evidence, actions };
  }
  const never = impossible(subject);
  if (never !== undefined) return { ...never, evidence: [...never.evidence, ...evidence] };
  const ports = takenPorts(subject);
  return {
    sentence:
      `${name} is not scheduled: ${unbound?.cause ?? (ports || message || condition.reason || 'no node fits')}.`.replace(
        /\.\.$/,
        '.',
      ),
    evidence: [...requestLines(subject, message), ...(unbound?.evidence ?? []), ...evidence],
    actions: unbound?.actions ?? adviceOn(message).map((each) => each(subject)),
  };
}

/** Returns the pattern that the main obstacle in the scheduler's message matches; undefined if there is no such message. */
function obstacleOf(pod: Pod): RegExp | undefined {
  const { reason, message } = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled') ?? {};
  return !pod.spec?.nodeName && reason === 'Unschedulable' ? adviceFor(oneLine(message))?.[0] : undefined;
}

/** Returns whether the scheduler's message calls a host port the main obstacle of the Pod. */
export const waitsForPort = (pod: Pod): boolean => obstacleOf(pod) === NO_FREE_PORT;

/** Returns whether the scheduler's message calls the place of a volume the main obstacle of the Pod. */
export const hasDistantVolume = (pod: Pod): boolean => obstacleOf(pod) === VOLUME_CONFLICT;

/**
 * Returns whether the Pod may wait for claims that are not bound: the scheduler's message calls them the main obstacle, or there is no
 * message yet, as while the scheduler has chosen a node and waits for the volumes.
 */
export function waitsForClaims(pod: Pod): boolean {
  if (pod.spec?.nodeName || claimNamesOf(pod).length === 0) return false;
  const isJudged = pod.status?.conditions?.some(({ type }) => type === 'PodScheduled') === true;
  return !isJudged || [NO_VOLUME, UNBOUND].includes(obstacleOf(pod) ?? NO_FREE_PORT);
}

const unboundClaims = (subject: Living): UnboundFinding | undefined =>
  waitsForClaims(subject.pod) ? unboundFinding(subject, obstacleOf(subject.pod) === NO_VOLUME) : undefined;

/** Returns which Pods use the host ports, as a clause; empty if these are not the main obstacle, or if the Pods are not known. */
function takenPorts({ pod, otherPods = [] }: Living): string {
  if (!waitsForPort(pod)) return '';
  const bound = otherPods.filter((other) => other.spec?.nodeName && !hasEnded(other) && uidOf(other) !== uidOf(pod));
  const clauses = bound.flatMap((other) =>
    hostPortsTakenBy(pod, other).map(
      (port) => `its host port ${port} is used by the Pod ${other.metadata.namespace}/${other.metadata.name}`,
    ),
  );
  return clauses.join('; ');
}

function gated(subject: Living): Explanation {
  const { pod, name, namespace, hints } = subject;
  const names = listed((pod.spec?.schedulingGates ?? []).map((gate) => gate.name));
  return {
    sentence: `${name} is not scheduled: its scheduling gates ${names} have not been removed.`,
    evidence: conditionLine(conditionOf(subject, 'PodScheduled')),
    actions: [
      { description: 'wait: the controller that set the gates removes them when the Pod may start' },
      { description: 'remove them by hand', command: hints.kubectl(`edit pod ${name} -n ${namespace}`) },
    ],
  };
}

interface Shortage {
  resource: string;
  requested: Quantity;
  /** The largest allocatable amount of a node; undefined if no node has the resource. */
  largest: Quantity | undefined;
  /** The capacity of this node if the Pod would fit into it without the reserved part; else undefined. */
  capacity: Quantity | undefined;
}

/** Returns the resources of which the Pod requests more than any node has, even without other Pods; none if the nodes are not known. */
function shortages({ pod, nodes = [] }: Living): Shortage[] {
  if (nodes.length === 0) return [];
  return wantedBy(pod).flatMap(([resource, requested]): Shortage[] => {
    const [best] = nodes
      .flatMap((node: Node) => {
        const amount = allocatableOf(node, resource);
        return amount === undefined ? [] : [{ node, amount }];
      })
      .sort((a, b) => compareQuantities(b.amount, a.amount));
    if (best === undefined) return [{ resource, requested, largest: undefined, capacity: undefined }];
    if (compareQuantities(requested, best.amount) <= 0) return [];
    const capacity = resourceQuantity(best.node.status?.capacity, resource);
    const isReserved = capacity !== undefined && compareQuantities(requested, capacity) <= 0;
    return [{ resource, requested, largest: best.amount, capacity: isReserved ? capacity : undefined }];
  });
}

function shortageClauses(subject: Living): string[] {
  const { nodes = [] } = subject;
  const one = nodes.length === 1;
  const where = one ? `the node ${nodeName(subject)}` : 'the largest node';
  return shortages(subject).map(({ resource, requested, largest, capacity }) => {
    if (largest === undefined) return `it requests ${amountText(requested)} ${resource}, which no node has`;
    const rest = capacity === undefined ? '' : ` (of ${amountText(capacity)}, the rest is reserved)`;
    return `it requests ${amountText(requested)} ${resource}, and ${where} has only ${amountText(largest)} for all Pods together${rest}`;
  });
}

/** Returns why no node can run the Pod, as clauses without its name, and the first action. The Pod has the condition PodScheduled. */
export function unschedulable(subject: Living): { cause: string; action: Action } {
  const preemption = preemptionOf(subject);
  if (preemption !== undefined) return { cause: preemption.cause, action: WAIT_FOR_ROOM };
  const message = oneLine(conditionOf(subject, 'PodScheduled')?.message);
  const clauses = shortageClauses(subject);
  if (clauses.length > 0) return { cause: clauses.join('; '), action: lower(subject) };
  const cause = takenPorts(subject) || [message.replace(/\.$/, ''), ...requestLines(subject, message)].join('; ');
  return { cause, action: (adviceOn(message)[0] ?? SEE_NODES)(subject) };
}

function lower(subject: Living): Action {
  const description = 'lower the requests (and limits) of its containers, and recreate the Pod';
  if (shortages(subject).some(({ capacity }) => capacity === undefined)) return { description };
  const options = '--kube-reserved, --system-reserved or --eviction-hard';
  return { description: `${description}, or reserve less of the machine: start the engine with a lower ${options}` };
}

const SEE_NODES = describeNode('see the resources, labels and taints of the nodes');

const adviceFor = (message: string) => ADVICE.find(([pattern]) => pattern.test(message));

const adviceOn = (message: string): Advice[] => (adviceFor(message)?.slice(1) as Advice[] | undefined) ?? [SEE_NODES];

function impossible(subject: Living): Explanation | undefined {
  const { name } = subject;
  const clauses = shortageClauses(subject);
  if (clauses.length === 0) return undefined;
  return {
    sentence: `${name} can never be scheduled: ${clauses.join('; ')}.`,
    evidence: [],
    actions: [lower(subject), describeNode('see what the node has (Allocatable)')(subject)],
  };
}

/** Returns a line for each node and resource that the scheduler's message calls insufficient. */
function requestLines({ pod, nodes = [] }: Living, message: string): string[] {
  return wantedBy(pod)
    .filter(([resource]) => message.includes(`Insufficient ${resource}`))
    .flatMap(([resource, requested]) =>
      nodes.map(
        (node) =>
          `it requests ${amountText(requested)} ${resource}; node ${node.metadata.name} has ${amountText(allocatableOf(node, resource) ?? zeroQuantity)} for all Pods together`,
      ),
    );
}
