/**
 * Finds in Events why the node cannot prepare the sandbox or the volumes of a Pod. The status of the Pod does not show the problem: its
 * containers have the same states as in a Pod that is still being prepared. Pure.
 */
import type { CoreV1Event, Pod } from '../../api/generated/types.ts';
import { fullDiskText } from '../../runtime/full-disk.ts';
import type { Hints } from '../hints.ts';
import { podContainers } from '../pod-containers.ts';
import { FREE_SPACE, volumeFinding } from '../why/failed-start.ts';
import { actionsText } from '../why/images.ts';
import { oneLine } from '../why/subject.ts';

const [SANDBOX, VOLUMES] = ['FailedCreatePodSandBox', 'FailedMount'];

export const isAboutPreparation = ({ reason }: CoreV1Event): boolean => reason === SANDBOX || reason === VOLUMES;

export interface PreparationProblem {
  text: string;
  /** `sandbox` or `volumes`: the messages of repeated attempts may differ in IDs. */
  cause: string;
  hint: string;
}

/** Returns the problem that `event`, the last one about the Pod's preparation, reports; undefined if the Pod has been prepared since. */
export function preparationProblem(pod: Pod, event: CoreV1Event, hints: Hints): PreparationProblem | undefined {
  if (isPrepared(pod)) return undefined;
  const message = oneLine(event.message);
  if (event.reason === SANDBOX) {
    const why = message.replace(/^Failed to create pod sandbox: /, '').replace(/^rpc error: code = \w+ desc = /, '');
    const full = fullDiskText(why);
    const hint = full === undefined ? '' : FREE_SPACE;
    return { text: `its sandbox cannot be created: ${full ?? why}`, cause: 'sandbox', hint };
  }
  const found = volumeFinding({ namespace: pod.metadata.namespace ?? '', hints, pod }, message);
  if (found === undefined) return { text: `its volumes cannot be mounted: ${message}`, cause: 'volumes', hint: '' };
  const volume = /for volume "([^"]+)"/.exec(message)?.[1];
  return {
    text: `${volume === undefined ? 'one of its volumes' : `its volume ${volume}`} ${found.cause}`,
    cause: 'volumes',
    hint: actionsText(found.actions),
  };
}

const isPrepared = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'PodReadyToStartContainers' && status === 'True') ===
    true || podContainers(pod).some(({ status }) => (status?.containerID ?? '') !== '');
