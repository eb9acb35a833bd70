/** Determines a container's phase: waiting, in back-off, running, exited or (a defer container) ended. Source: Pod Lifecycle (v1.33). */
import { pullMessage } from '../api/core/v1/pod/status/pull-progress.ts';
import { formatDuration, type Millis } from '../machinery/time.ts';
import { imageActions, imageFound, missingTarget } from './container-steps.ts';
import { failureInTurn, nextTry } from './defer.ts';
import { hasStarted } from './hooks-and-stops.ts';
import { restartAfter, wantsRestart } from './restart.ts';
import type { Finished, Progress } from './start-order.ts';
import type { End } from './termination-stages.ts';
import { actionKey, type ContainerState, type EntryEnd, type FailedAction, runKey } from './types.ts';
import { type ContainerView, isLive, isRunning, type PodView } from './view.ts';

export interface Situation {
  view: PodView;
  end: End | undefined; // Undefined: the Pod is not terminating.
  finished: Finished | undefined; // Undefined: the Pod has not finished.
  progress: Progress;
}

/** Whether all init containers have had their turn, so that the app containers may start or have started. */
export const isInitialized = ({ view, end, progress }: Situation): boolean =>
  view.initialized || (end === undefined && progress === 'running');

type Waiting = { is: 'Waiting'; reason: string; message: string | undefined };
export type Phase =
  | Waiting
  | { is: 'BackingOff'; reason: string; message: string; until: Millis } // The earliest start of the next run.
  | { is: 'Running'; run: ContainerState }
  | { is: 'Exited'; run: ContainerState }
  | { is: 'Ended'; end: EntryEnd }; // Only defer containers.

const waiting = (reason: string, message?: string): Waiting => ({ is: 'Waiting', reason, message });
const creating = ({ init }: PodView): string => (init.length > 0 ? 'PodInitializing' : 'ContainerCreating');

export function phaseOf(container: ContainerView, situation: Situation): Phase {
  if (container.kind === 'defer') return deferPhase(container, situation);
  const { view, end, finished } = situation;
  const { kind, latest: run, current } = container;
  const isAlive = end === undefined && finished === undefined;
  const why = isAlive ? whyWaiting(container, view) : undefined;
  if (why !== undefined) return why;
  if (run?.state === 'unknown' || (run?.state === 'running' && hasStarted(view, container, run)))
    return { is: 'Running', run };
  if (run?.state === 'exited') {
    // The run belongs to a lost sandbox, and the container has no run in the new sandbox yet.
    const isBefore = isAlive && current === undefined && view.sandbox?.ready === true;
    const restarts = isAlive && wantsRestart(view, container, run);
    // The API lets no container that has succeeded run again with restartPolicy OnFailure, so this exit is only shown as the last state.
    const isHidden = restarts && !container.sidecar && view.restartPolicy === 'OnFailure' && run.exitCode === 0;
    if (!isHidden && (!isBefore || (kind !== 'init' && !restarts))) return { is: 'Exited', run };
  }
  return failed(view.failureOf('mountVolumes'), view) ?? waiting(creating(view));
}

function deferPhase(container: ContainerView, { view, end }: Situation): Phase {
  const { latest, current, nextAttempt } = container;
  const entry = end?.list?.byContainer.get(container);
  if (entry === undefined) {
    // While the Pod runs, the status shows failures to pull the image in advance.
    const pull = imageFound(container, nextAttempt)?.state === 'present' ? undefined : imagePhase(container, view);
    return pull === undefined || pull.reason === creating(view) ? waiting('PodRunning') : pull;
  }
  if (entry.end !== undefined) return { is: 'Ended', end: entry.end };
  if (isRunning(latest)) return { is: 'Running', run: latest };
  if (end?.list?.turn !== entry) return waiting('PendingDefer');
  if (current !== undefined && nextTry(view, container).at > view.now) return backingOff(container, current, view);
  const failure = failureInTurn(view, entry) ?? view.failureOf('mountVolumes');
  return waiting(failure?.reason ?? 'ContainerCreating', failure?.message);
}

/** Returns the waiting state, or the back-off, of a container of a Pod that is not terminating; undefined if neither applies. */
function whyWaiting(container: ContainerView, view: PodView): Phase | undefined {
  const { name, current, nextAttempt } = container;
  const hook = current && view.observed.hooks[runKey(current.id, 'postStart')]?.failure;
  const hooked = hook === undefined ? undefined : waiting('PostStartHookError', hook);
  if (isLive(current)) return hooked;
  if (current && !wantsRestart(view, container, current)) return undefined;
  if (current && restartAfter(current, view.stops).at > view.now) return backingOff(container, current, view);
  const target = imageFound(container, nextAttempt)?.state === 'present' ? missingTarget(view, container) : undefined;
  return (
    imagePhase(container, view) ??
    failed(view.failureOf(`startContainer/${name}/${nextAttempt}`), view) ??
    (target === undefined ? hooked : waiting('CreateContainerConfigError', target))
  );
}

function imagePhase(container: ContainerView, view: PodView): Waiting | undefined {
  const { pull, check } = imageActions(container, container.nextAttempt);
  const failure = view.failureOf(actionKey(pull)) ?? view.failureOf(actionKey(check));
  const message = pullMessage(container.image, view.observed.pulls?.[actionKey(pull)]);
  return failed(failure, view) ?? (message === undefined ? undefined : waiting(creating(view), message));
}

function failed(failure: FailedAction | undefined, view: PodView): Waiting | undefined {
  if (failure === undefined) return undefined;
  const { reason, message } = failure;
  if (isBackingOffForImage(failure, view))
    return waiting('ImagePullBackOff', `Back-off pulling image "${pulledImage(failure)}": ${reason}: ${message}`);
  return waiting(reason === 'FailedMount' ? creating(view) : reason, message);
}

const pulledImage = ({ action, image }: FailedAction): string | undefined =>
  action.kind === 'pullImage' ? action.image : image;

/** How long a failed pull is shown with its own reason, such as ErrImagePull, before it is shown as ImagePullBackOff. */
export const ERR_IMAGE_PULL_SHOWN_MILLIS = 1000;

export const isBackingOffForImage = (failure: FailedAction, { isUnderWay, now }: PodView): boolean =>
  pulledImage(failure) !== undefined &&
  !(failure.reason in LOOK_EVENTS) &&
  !isUnderWay(actionKey(failure.action)) &&
  now - failure.at >= ERR_IMAGE_PULL_SHOWN_MILLIS;

/** Returns the Pod's identity as in upstream's back-off messages. */
export const podInFull = ({ pod: { metadata } }: PodView): string =>
  `${metadata.name}_${metadata.namespace ?? 'default'}(${metadata.uid})`;

function backingOff({ name }: ContainerView, run: ContainerState, view: PodView): Phase {
  const { at: until, delaySeconds } = restartAfter(run, view.stops);
  const delay = formatDuration(delaySeconds * 1000);
  const message = `back-off ${delay} restarting failed container=${name} pod=${podInFull(view)}`;
  return { is: 'BackingOff', reason: 'CrashLoopBackOff', message, until };
}

/** Failures before the registry is contacted. They cause no ImagePullBackOff. Maps the waiting reason to the Event's reason. */
export const LOOK_EVENTS: Readonly<Record<string, string>> = {
  InvalidImageName: 'InspectFailed',
  ImageInspectError: 'InspectFailed',
  ErrImageNeverPull: 'ErrImageNeverPull',
};
