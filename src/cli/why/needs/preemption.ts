/** Explains a Pod that waits for room on the node that the scheduler has chosen for it (src/scheduler/writes.ts). Pure. */
import { hasEnded } from '../../../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../../../api/generated/types.ts';
import { deadlineOf, untilText } from '../ending-phrases.ts';
import { type Action, type Living, listed } from '../subject.ts';

const MOST_NAMES = 3;

/** Returns whether the scheduler has chosen a node for the Pod, on which it fits as soon as other Pods have ended. */
export const isPreempting = ({ spec, status }: Pod): boolean => !spec?.nodeName && Boolean(status?.nominatedNodeName);

export const WAIT_FOR_ROOM: Action = { description: 'wait: it is then scheduled automatically' };

export interface Preemption {
  /** A clause that does not change while the Pod waits for the same Pods. */
  cause: string;
  /** The last deadline of these Pods, as the end of a sentence; empty if they are not known. */
  due: string;
  actions: Action[];
}

/**
 * Returns undefined if the Pod does not preempt others. The API does not have which Pods were terminated for this one, so all that are
 * terminating on the node count.
 */
export function preemptionOf(subject: Living): Preemption | undefined {
  const { pod, otherPods = [], hints } = subject;
  if (!isPreempting(pod)) return undefined;
  const node = pod.status?.nominatedNodeName ?? '';
  const ending = otherPods
    .filter((each) => isEndingOn(each, node))
    .map((each): Living => ({ ...subject, pod: each, transitions: [] }))
    .sort((a, b) => (deadlineOf(b) ?? 0) - (deadlineOf(a) ?? 0));
  const [last] = ending;
  if (last === undefined)
    return {
      cause: `it waits for room on node ${node}, which the scheduler has chosen for it`,
      due: '',
      actions: [
        WAIT_FOR_ROOM,
        {
          description: 'see which Pods are on the node',
          command: hints.kubectl(`get pods -A --field-selector spec.nodeName=${node}`),
        },
      ],
    };
  const { name, namespace } = last.pod.metadata;
  return {
    cause: `it waits for the end of ${named(ending)} on node ${node}`,
    due: untilText(deadlineOf(last), subject),
    actions: [
      WAIT_FOR_ROOM,
      { description: `see why ${name} has not ended yet`, command: hints.lifepod(`why ${name} -n ${namespace}`) },
    ],
  };
}

function named(pods: readonly Living[]): string {
  const names = pods.map(({ pod: { metadata } }) => `${metadata.namespace}/${metadata.name}`);
  const others = names.length - MOST_NAMES;
  const shown = others > 0 ? [...names.slice(0, MOST_NAMES), `${others} ${others === 1 ? 'other' : 'others'}`] : names;
  return `the Pod${names.length === 1 ? '' : 's'} ${listed(shown)}`;
}

const isEndingOn = (pod: Pod, node: string): boolean =>
  pod.spec?.nodeName === node && pod.metadata.deletionTimestamp !== undefined && !hasEnded(pod);
