/** Explains why a Pod is not scheduled. Pure. */
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

/** Patterns for the scheduler's message, each with advice. The first pattern that matches is used. */
const ADVICE: readonly [RegExp, string][] = [
  [
    /Insufficient ([\w./-]+)/,
    'lower the requests of its containers, or delete other Pods: kubectl describe node shows what is allocated',
  ],
  // lifepod sets these taints again as long as the pressure lasts, so removing them does not help.
  [
    /taint \{node\.kubernetes\.io\/(disk|memory|pid)-pressure/,
    'free the resource that the machine is short of (kubectl describe node shows which), or lower its threshold: lifepod up --eviction-hard',
  ],
  [/taint \{node\.kubernetes\.io\/unschedulable/, 'the node is cordoned: kubectl uncordon NODE'],
  [/taint \{node\.kubernetes\.io\/(not-ready|unreachable)/, 'the node is not ready: lifepod status shows why'],
  [/untolerated taint|had taint/, 'give the Pod a toleration, or remove the taint from the node (kubectl taint)'],
  [
    /node affinity|node selector/i,
    'label a node as the Pod requires (kubectl label node), or change its nodeSelector or affinity',
  ],
  [/anti-affinity|pod affinity|topology spread/i, 'change its affinity rules, or add a node'],
  [/free ports/, 'another Pod uses the hostPort: delete it, or choose another port'],
  [/unschedulable/, 'a node is cordoned: kubectl uncordon NODE'],
  [/persistentvolumeclaim/i, 'create the PersistentVolumeClaim that it names'],
  [/Too many pods/, 'the node is full: delete other Pods'],
];

export function explainScheduling(subject: Living): Explanation | undefined {
  const { pod, name, namespace } = subject;
  if (pod.spec?.nodeName) return undefined;
  const gates = pod.spec?.schedulingGates ?? [];
  if (gates.length > 0) {
    const names = listed(gates.map((gate) => gate.name));
    return {
      sentence: `${name} is not scheduled: its scheduling gates ${names} have not been removed.`,
      evidence: conditionLine(conditionOf(subject, 'PodScheduled')),
      advice: `the controller that set the gates removes them when the Pod may start; by hand: kubectl edit pod ${name} -n ${namespace}`,
    };
  }
  const scheduler = pod.spec?.schedulerName ?? DEFAULT_SCHEDULER;
  const condition = conditionOf(subject, 'PodScheduled');
  if (condition?.status !== 'False') {
    const foreign = scheduler !== DEFAULT_SCHEDULER;
    return {
      sentence: foreign
        ? `${name} is not scheduled: it requires the scheduler ${scheduler}, which has not handled it.`
        : `${name} is not scheduled yet: the scheduler has not handled it.`,
      evidence: [`spec.schedulerName is ${scheduler}`, ...conditionLine(condition)],
      advice: foreign
        ? `start that scheduler, or omit spec.schedulerName to use ${DEFAULT_SCHEDULER}`
        : 'wait a moment; lifepod status shows whether the engine is healthy',
    };
  }
  const message = oneLine(condition.message);
  const advice = ADVICE.flatMap(([pattern, text]) => (pattern.test(message) ? [text] : []));
  return {
    sentence: `${name} is not scheduled: ${message || condition.reason || 'no node fits'}.`.replace(/\.\.$/, '.'),
    evidence: [...conditionLine(condition), ...eventLine(eventOf(subject, ['FailedScheduling']), subject)],
    advice: advice[0] ?? 'kubectl describe node shows the resources, labels and taints of the nodes',
  };
}
