/** Why a Pod has no node. Pure. */
import {
  conditionLine,
  conditionOf,
  type Explanation,
  eventLine,
  eventOf,
  type Living,
  listed,
  oneLine,
} from './subject.ts';

const DEFAULT_SCHEDULER = 'default-scheduler';

/** What the scheduler says, and what can be done about it. */
const ADVICE: readonly [RegExp, string][] = [
  [
    /Insufficient ([\w./-]+)/,
    'lower the requests of its containers, or end other Pods: kubectl describe node shows what is taken',
  ],
  // The node sets these again while it is so.
  [
    /taint \{node\.kubernetes\.io\/(disk|memory|pid)-pressure/,
    'free what the machine is short of (kubectl describe node says what), or lower its threshold: lifepod up --eviction-hard',
  ],
  [/taint \{node\.kubernetes\.io\/unschedulable/, 'the node is cordoned: kubectl uncordon NODE'],
  [/taint \{node\.kubernetes\.io\/(not-ready|unreachable)/, 'the node is not ready: lifepod status says why'],
  [/untolerated taint|had taint/, 'give the Pod a toleration, or take the taint from the node (kubectl taint)'],
  [
    /node affinity|node selector/i,
    'label a node as the Pod asks for (kubectl label node), or change its nodeSelector or affinity',
  ],
  [/anti-affinity|pod affinity|topology spread/i, 'change its affinity rules, or add a node'],
  [/free ports/, 'another Pod has the hostPort: end it, or choose another port'],
  [/unschedulable/, 'a node is cordoned: kubectl uncordon NODE'],
  [/persistentvolumeclaim/i, 'create the PersistentVolumeClaim that it names'],
  [/Too many pods/, 'the node is full: end other Pods'],
];

export function explainScheduling(subject: Living): Explanation | undefined {
  const { pod, name, namespace } = subject;
  if (pod.spec?.nodeName) return undefined;
  const gates = pod.spec?.schedulingGates ?? [];
  if (gates.length > 0) {
    const names = listed(gates.map((gate) => gate.name));
    return {
      sentence: `${name} is not scheduled: its scheduling gates ${names} hold it back.`,
      evidence: conditionLine(conditionOf(subject, 'PodScheduled')),
      advice: `whoever set the gates takes them away when the Pod may start: kubectl edit pod ${name} -n ${namespace}`,
    };
  }
  const scheduler = pod.spec?.schedulerName ?? DEFAULT_SCHEDULER;
  const condition = conditionOf(subject, 'PodScheduled');
  if (condition?.status !== 'False') {
    const foreign = scheduler !== DEFAULT_SCHEDULER;
    return {
      sentence: foreign
        ? `${name} is not scheduled: it asks for the scheduler ${scheduler}, which has not looked at it.`
        : `${name} is not scheduled yet: the scheduler has not looked at it.`,
      evidence: [`spec.schedulerName is ${scheduler}`, ...conditionLine(condition)],
      advice: foreign
        ? `start that scheduler, or leave spec.schedulerName away: lifepod has ${DEFAULT_SCHEDULER}`
        : 'it takes a moment; lifepod status shows whether the engine is well',
    };
  }
  const message = oneLine(condition.message);
  const advice = ADVICE.flatMap(([pattern, text]) => (pattern.test(message) ? [text] : []));
  return {
    sentence: `${name} is not scheduled: ${message || condition.reason || 'no node takes it'}.`.replace(/\.\.$/, '.'),
    evidence: [...conditionLine(condition), ...eventLine(eventOf(subject, ['FailedScheduling']), subject)],
    advice: advice[0] ?? 'kubectl describe node shows what the nodes offer',
  };
}
