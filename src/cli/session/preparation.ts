/**
 * Finds in Events why the node cannot prepare the sandbox or the volumes of a Pod. The status of the Pod does not show the problem: its
 * containers have the same states as in a Pod that is still being prepared. Pure.
 */
import type { CoreV1Event, Pod } from '../../api/generated/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { podContainers } from '../pod-containers.ts';
import { volumeFinding } from '../why/failed-start.ts';
import { actionsText } from '../why/images.ts';
import { sandboxFinding } from '../why/needs/sandbox.ts';
import { oneLine } from '../why/subject.ts';
import { CHECK_SANDBOX_IMAGE, INTACT_MILLIS, SANDBOX_ENDED } from '../why/waiting.ts';

const [SANDBOX, VOLUMES, SANDBOX_CHANGED] = ['FailedCreatePodSandBox', 'FailedMount', 'SandboxChanged'];

/** Field selectors. They select all Events for which isAboutPreparation() may be true. */
export const PREPARATION_EVENTS = ['type=Warning', `reason=${SANDBOX_CHANGED}`];

/** Returns whether the Event is about the preparation of its Pod. `before`: the previous Event about the preparation of this Pod. */
export function isAboutPreparation({ reason }: CoreV1Event, before: CoreV1Event | undefined): boolean {
  // The remains of a sandbox whose creation failed also cause SandboxChanged.
  if (reason === SANDBOX_CHANGED) return before?.reason !== SANDBOX;
  return reason === SANDBOX || reason === VOLUMES;
}

export const isSandboxChange = (event: CoreV1Event | undefined): boolean => event?.reason === SANDBOX_CHANGED;

export interface PreparationProblem {
  text: string;
  /** `sandbox` or `volumes`: the messages of repeated attempts may differ in IDs. */
  cause: string;
  hint: string;
  isFinal: boolean;
}

/** Returns the problem that `event`, the last one about the Pod's preparation, reports; undefined if the Pod has been prepared since. */
export function preparationProblem(
  pod: Pod,
  event: CoreV1Event,
  hints: Hints,
  now: Millis,
): PreparationProblem | undefined {
  if (isSandboxChange(event))
    return isSandboxIntact(pod, now)
      ? undefined
      : { text: SANDBOX_ENDED, cause: 'sandbox', hint: CHECK_SANDBOX_IMAGE, isFinal: false };
  if (isPrepared(pod)) return undefined;
  const message = oneLine(event.message);
  if (event.reason === SANDBOX) {
    const why = message.replace(/^Failed to create pod sandbox: /, '').replace(/^rpc error: code = \w+ desc = /, '');
    const found = sandboxFinding(pod, why);
    return {
      text: `its sandbox cannot be created: ${found?.cause ?? why}`,
      cause: 'sandbox',
      hint: actionsText(found?.actions ?? []),
      isFinal: found?.isFinal ?? false,
    };
  }
  const found = volumeFinding({ namespace: pod.metadata.namespace ?? '', hints, pod }, message);
  if (found === undefined)
    return { text: `its volumes cannot be mounted: ${message}`, cause: 'volumes', hint: '', isFinal: false };
  const volume = /for volume "([^"]+)"/.exec(message)?.[1];
  return {
    text: `${volume === undefined ? 'one of its volumes' : `its volume ${volume}`} ${found.cause}`,
    cause: 'volumes',
    hint: actionsText(found.actions),
    isFinal: false,
  };
}

const sandboxCondition = (pod: Pod) =>
  pod.status?.conditions?.find(({ type, status }) => type === 'PodReadyToStartContainers' && status === 'True');

const isPrepared = (pod: Pod): boolean =>
  sandboxCondition(pod) !== undefined || podContainers(pod).some(({ status }) => (status?.containerID ?? '') !== '');

/**
 * Returns whether the new sandbox seems intact. It is ready for a moment even if it ends at once, so its age or a run of a container
 * decides.
 */
function isSandboxIntact(pod: Pod, now: Millis): boolean {
  const since = parseTime(sandboxCondition(pod)?.lastTransitionTime);
  if (since !== undefined && now - since > INTACT_MILLIS) return true;
  return podContainers(pod).some(
    ({ status: { state, lastState } = {} }) =>
      state?.running !== undefined || [state, lastState].some((each) => each?.terminated?.startedAt !== undefined),
  );
}
