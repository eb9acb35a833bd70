/** Explains a Pod that waits for the end of Pods that the scheduler has preempted (src/scheduler/writes.ts). Pure. */
import type { Pod } from '../../../api/generated/types.ts';
import { deadlineOf, untilText } from '../ending-phrases.ts';
import { type Action, conditionOf, type Living, listed } from '../subject.ts';

/** Returns whether the scheduler has chosen a node for the Pod, on which it fits as soon as the preempted Pods have ended. */
export const isPreempting = ({ spec, status }: Pod): boolean => !spec?.nodeName && Boolean(status?.nominatedNodeName);

export const WAIT_FOR_ROOM: Action = { description: 'wait: it is then scheduled automatically' };

export interface Preemption {
  /** A clause that does not change while the Pod waits for the same Pods. */
  cause: string;
  /** The last deadline of the preempted Pods, as the end of a sentence; empty if they are not known. */
  due: string;
  actions: Action[];
}

/** Returns undefined if the Pod does not preempt others. */
export function preemptionOf(subject: Living): Preemption | undefined {
  const { pod, otherPods = [], hints } = subject;
  if (!isPreempting(pod)) return undefined;
  const node = pod.status?.nominatedNodeName ?? '';
  const victims = otherPods
    .map((each): Living => ({ ...subject, pod: each, transitions: [] }))
    .filter((each) => isVictim(each, node))
    .sort((a, b) => (deadlineOf(b) ?? 0) - (deadlineOf(a) ?? 0));
  const names = victims.map(({ pod: { metadata } }) => `${metadata.namespace}/${metadata.name}`);
  const [last] = victims;
  const which =
    last === undefined ? 'preempted Pods' : `the preempted Pod${names.length === 1 ? '' : 's'} ${listed(names)}`;
  return {
    cause: `it waits for the end of ${which} on node ${node}`,
    due: last === undefined ? '' : untilText(deadlineOf(last), subject),
    actions: [
      WAIT_FOR_ROOM,
      ...(last === undefined
        ? []
        : [
            {
              description: `see why ${last.pod.metadata.name} has not ended yet`,
              command: hints.lifepod(`why ${last.pod.metadata.name} -n ${last.pod.metadata.namespace}`),
            },
          ]),
    ],
  };
}

const isVictim = (subject: Living, node: string): boolean =>
  subject.pod.spec?.nodeName === node &&
  subject.pod.metadata.deletionTimestamp !== undefined &&
  conditionOf(subject, 'DisruptionTarget')?.reason === 'PreemptionByScheduler';
