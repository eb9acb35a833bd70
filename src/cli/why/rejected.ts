/** Explains a Pod that its node rejected, evicted or ended, by the reason in the status of the Pod. Pure. */
import { compareQuantities } from '../../machinery/quantity.ts';
import { allocatableOf, wantedBy } from '../../scheduling/node-resources.ts';
import { amountText } from './amounts.ts';
import { evictingTaint, removeTaint, taintText, tolerate } from './node-troubles.ts';
import { evictionOf } from './stops/eviction.ts';
import {
  type Action,
  type Explanation,
  eventLine,
  eventOf,
  type Living,
  lastStep,
  oneLine,
  seeStatus,
  seeTimeline,
} from './subject.ts';

interface Finding {
  /** A clause that names the cause and follows the name of the Pod. */
  cause: string;
  evidence?: string[];
  actions: Action[];
}

type Rule = (subject: Living, message: string) => Finding;

const recreate = (what: string): Action => ({
  description: `${what}, and recreate the Pod: a failed Pod does not run again`,
});

const nodeOf = ({ pod }: Living): string => pod.spec?.nodeName ?? 'its node';

/** Returns how to restart the engine with the option. `what` is the purpose, a verb phrase. */
const restartWith = (subject: Living, option: string, what: string): Action[] =>
  subject.hints.isService
    ? [
        {
          description: `to ${what}, restart the service with this option: its Pods keep running`,
          command: subject.hints.engine(`up --install-service ${option}`),
        },
      ]
    : [
        seeStatus(subject, `to ${what}, read the PID of the engine`),
        { description: 'stop the engine: its Pods keep running', command: subject.hints.asRoot('kill PID') },
        { description: 'start it with this option', command: subject.hints.engine(`up --detach ${option}`) },
      ];

const sysctl: Rule = (subject, message) => {
  const name = /"([^"]+)"/.exec(message)?.[1] ?? 'NAME';
  return {
    cause: `its node ${nodeOf(subject)} forbids the sysctl ${name}`,
    actions: [
      ...restartWith(subject, `--allowed-unsafe-sysctls ${name}`, 'allow the sysctl'),
      recreate('or remove it from spec.securityContext.sysctls'),
    ],
  };
};

const nodeAffinity: Rule = (subject) => {
  const { pod, hints } = subject;
  const selector = Object.entries(pod.spec?.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
  return {
    cause: `its node ${nodeOf(subject)} does not have the labels that its nodeSelector or affinity requires${selector.length > 0 ? ` (${selector.join(', ')})` : ''}`,
    actions: [
      {
        description: 'label the node',
        command: hints.kubectl(
          `label node ${nodeOf(subject)} ${selector.length > 0 ? selector.join(' ') : 'KEY=VALUE'}`,
        ),
      },
      recreate('or omit spec.nodeName, so that the scheduler chooses a node'),
    ],
  };
};

/** Compares what the Pod requests with what its node has. `never`: the node is too small even without other Pods. */
function shortage(subject: Living, resource: string): { cause: string; never: boolean } {
  const asked = new Map(wantedBy(subject.pod)).get(resource);
  const has = subject.node === undefined ? undefined : allocatableOf(subject.node, resource);
  if (asked === undefined || has === undefined)
    return { cause: `its node has not enough ${resource} left`, never: false };
  const never = compareQuantities(asked, has) > 0;
  return {
    cause: `it requests ${amountText(asked)} ${resource}, and ${never ? 'its node has only' : 'the other Pods leave less of the'} ${amountText(has)}${never ? ' for all Pods together' : ' of its node'}`,
    never,
  };
}

const outOf =
  (resource: string): Rule =>
  (subject) => ({
    cause: shortage(subject, resource).cause,
    actions: [
      recreate('lower its requests, delete other Pods, or omit spec.nodeName, so that the scheduler waits for a place'),
      { description: 'see what is allocated', command: subject.hints.kubectl(`describe node ${nodeOf(subject)}`) },
    ],
  });

/** A static or critical Pod for which the node cannot preempt others. Source: the kubelet of v1.33 (the message). */
const unexpected: Rule = (subject, message) => {
  const lacks = [...message.matchAll(/\(res: ([^,)]+), q: /g)].map(([, resource = '']) => shortage(subject, resource));
  const first = lacks.find(({ never }) => never) ?? lacks[0];
  return {
    cause: first?.cause ?? `its node rejected it, ${message}`,
    actions: [
      recreate(first?.never === true ? 'lower its requests' : 'lower its requests, or delete other Pods of the node'),
    ],
  };
};

const taint: Rule = (subject) => {
  const found = evictingTaint(subject);
  return {
    cause: `its node ${nodeOf(subject)} has ${found === undefined ? 'a NoExecute taint' : `the taint ${taintText(found.taint)}`}, which it does not tolerate`,
    actions: [...(found === undefined ? [] : [removeTaint(subject, found.node, found.taint)]), tolerate],
  };
};

const evicted: Rule = ({ hints, pod }, message) => {
  const limited = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].filter(
    ({ resources }) => resources?.limits?.['ephemeral-storage'] !== undefined,
  );
  const { cause, evidence, remedy } = evictionOf(
    message,
    limited.map(({ name }) => name),
  );
  if (remedy !== undefined) return { cause, evidence, actions: [recreate(remedy)] };
  return {
    cause,
    actions: [
      {
        description:
          'free the resource, or reduce what the Pod uses; a controller creates the Pod again, others must be recreated',
      },
      {
        description: 'see what the node is short of',
        command: hints.kubectl(`describe node ${pod.spec?.nodeName ?? ''}`),
      },
    ],
  };
};

const deadline: Rule = ({ pod }) => ({
  cause: `it was active longer than its activeDeadlineSeconds${pod.spec?.activeDeadlineSeconds === undefined ? '' : ` of ${pod.spec.activeDeadlineSeconds} s`}`,
  actions: [recreate('raise spec.activeDeadlineSeconds')],
});

const RULES: Readonly<Record<string, Rule>> = {
  SysctlForbidden: sysctl,
  NodeAffinity: nodeAffinity,
  TaintToleration: taint,
  NodePorts: () => ({
    cause: 'another Pod of its node has one of its host ports',
    actions: [recreate('choose another hostPort, or delete the other Pod')],
  }),
  Evicted: evicted,
  DeadlineExceeded: deadline,
  UnexpectedAdmissionError: unexpected,
  AppArmor: (_, message) => ({
    cause: `its node rejected it, ${message}`,
    actions: [recreate('omit its appArmorProfile, or use a machine with AppArmor')],
  }),
};

/** How the containers of the Pod ended. `text`: a clause about its defer containers, or empty. `actions`: what is left of their work. */
interface Ends {
  text: string;
  evidence: readonly string[];
  actions: readonly Action[];
}

/** Explains a Failed Pod by its status.reason; undefined if the reason is not known. */
export function explainRejected(subject: Living, ends: Ends): Explanation | undefined {
  const { reason = '', message } = subject.pod.status ?? {};
  const text = oneLine(message);
  const rule = RULES[reason] ?? (reason.startsWith('OutOf') ? outOf(reason.slice('OutOf'.length)) : undefined);
  if (rule === undefined) return undefined;
  const { cause, evidence = [], actions } = rule(subject, text);
  return {
    sentence: `${subject.name} has failed: ${cause}${ends.text}.`,
    evidence: [
      `status.reason is ${reason}${text && `: ${text}`}`,
      ...eventLine(eventOf(subject, [reason, 'Evicted']), subject),
      ...evidence,
      ...ends.evidence,
    ],
    actions: [...actions, ...ends.actions, ...(hasRun(subject) ? [seeTimeline(subject)] : [])],
  };
}

const hasRun = (subject: Living): boolean => lastStep(subject, ['Started']) !== undefined;
