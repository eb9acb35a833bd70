/**
 * Decides from the Pods and Jobs of a session whether everything has ended, which exit code the session has, and what keeps a Pod from
 * starting. Pure. Source of the exit codes: docker compose and docker run (behavior), whose code is that of the container that failed.
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { ContainerStateTerminated, CoreV1Event, Job, Node, Pod } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { imageNameRule } from '../../runtime/images/references.ts';
import type { Hints } from '../hints.ts';
import {
  type ContainerKind,
  hasInvalidName,
  lacksImage,
  type PodContainer,
  podContainers,
  runOf,
  wantedImage,
} from '../pod-containers.ts';
import { isNotDue } from '../timeline/life.ts';
import { commandError, FAILED_START_REASONS, startFinding } from '../why/failed-start.ts';
import { actionsText, imageHint, lackOfImage } from '../why/images.ts';
import { invalidNameText } from '../why/needs/image-name.ts';
import { unschedulable } from '../why/scheduling.ts';
import { stopOf } from '../why/stops/node-stop.ts';
import { called, controllerOf, type Living, oneLine } from '../why/subject.ts';
import { hasJobFailed, isJobFinished, type Refusal } from '../workloads/refused-pods.ts';
import { type ContainerRuns, failedStartOf, NO_RUNS, startedContainers } from './container-runs.ts';
import { isSandboxChange, preparationProblem } from './preparation.ts';

export interface SessionState {
  isComplete: boolean;
  /** Whether one of the objects never ends by itself, such as a Deployment. */
  hasEndless: boolean;
  /** The UIDs of the Pods and Jobs that the manifests define. */
  ending: ReadonlySet<string>;
  /** The Pods that the session or its objects have created, including Pods that do not exist any more, by UID. */
  pods: ReadonlyMap<string, Seen<Pod>>;
  jobs: ReadonlyMap<string, Seen<Job>>;
  /** The UIDs of the Pods and Jobs that were deleted before they had ended. */
  cut: ReadonlySet<string>;
}

export interface Seen<T> {
  object: T;
  isGone: boolean;
}

/** Returns whether all Pods and Jobs of the manifests have ended or been deleted; false if there are none, or if an object is endless. */
export function isOver({ isComplete, hasEndless, ending, pods, jobs }: SessionState): boolean {
  if (!isComplete || hasEndless || ending.size === 0) return false;
  return [...ending].every((uid) => {
    const [pod, job] = [pods.get(uid), jobs.get(uid)];
    if (pod !== undefined) return pod.isGone || hasEnded(pod.object);
    return job !== undefined && (job.isGone || isJobFinished(job.object));
  });
}

/**
 * Returns whether the Pod has failed for good, or was deleted before it could run. A failed Pod of a Job counts only after the Job has
 * failed, because the Job may try again. A failed Pod of another controller never counts, because the controller replaces the Pod.
 */
function hasFailed(pod: Seen<Pod>, jobs: SessionState['jobs']): boolean {
  const { object, isGone } = pod;
  const controller = controllerOf(object);
  // A Pod that has no node, or is deleted by force, does not become Failed before its deletion.
  if (isGone && controller === undefined && !hasEnded(object)) return isDeletedUnstarted(pod);
  if (object.status?.phase !== 'Failed') return false;
  const job = controller && jobs.get(controller.uid);
  return controller === undefined || (job !== undefined && hasJobFailed(job.object));
}

export interface Failure {
  uid: string;
  title: string;
  exitCode: number;
  /** The reason and message of the condition Failed of a Job, whose `exitCode` is not from a program. Undefined for a Pod. */
  condition?: string;
  /** Undefined if the program itself has probably reported the cause. */
  cause?: string;
}

/** Returns the failure of the Pod that failed first, else that of a failed Job, with the exit code 1; undefined if nothing has failed. */
export function firstFailure({ pods, jobs }: SessionState): Failure | undefined {
  const failed = [...pods.values()].filter((each) => hasFailed(each, jobs));
  const [first] = failed.sort((a, b) => endOf(a.object).localeCompare(endOf(b.object)));
  if (first !== undefined) return failureOf(first);
  const job = [...jobs.values()].find(({ object }) => hasJobFailed(object));
  return job && jobFailureOf(job.object);
}

/** Returns the failure of a Job that has failed. */
export function jobFailureOf(job: Job): Failure {
  const { reason = 'Failed', message } = job.status?.conditions?.find(({ type }) => type === 'Failed') ?? {};
  const condition = message ? `${reason}: ${message}` : reason;
  return { uid: uidOf(job), title: `job/${job.metadata.name}`, exitCode: 1, condition };
}

/** Returns the failure of a Pod that has failed. `steps`: the steps of its record, as far as they are known. */
export function failureOf(seen: Seen<Pod>, steps: readonly Transition[] = []): Failure {
  const { object } = seen;
  const common = { uid: uidOf(object), title: `pod/${object.metadata.name}` };
  return isDeletedUnstarted(seen)
    ? { ...common, exitCode: 1, cause: 'it was deleted before a container had started' }
    : { ...common, exitCode: exitCodeOf(object), ...causeOf(object, steps) };
}

/**
 * Returns whether the Pod was deleted before any of its containers ran: the exit codes are then not those of a program. Returns false if
 * the status has another reason, such as Evicted.
 */
const isDeletedUnstarted = ({ object, isGone }: Seen<Pod>): boolean =>
  (object.metadata.deletionTimestamp !== undefined || (isGone && !hasEnded(object))) &&
  object.status?.reason === undefined &&
  podContainers(object).every(({ status }) => runOf(status) === undefined && status?.state?.running === undefined);

interface FailedExit extends ContainerStateTerminated {
  finishedAt: string;
  container: string;
  kind: ContainerKind;
  attempt: number | undefined;
}

/**
 * Returns the exits with an error, app containers first, then init containers and those defer containers that fail the Pod; each kind in
 * the order of the exits.
 */
function failedExits(pod: Pod): FailedExit[] {
  const entries = pod.spec?.deferContainers ?? [];
  const failsPod = (name: string): boolean =>
    entries.some((each) => each.name === name && each.failurePolicy === 'FailPod');
  const ofKind = (kind: ContainerKind): FailedExit[] =>
    podContainers(pod)
      .filter((each) => each.kind === kind && (kind !== 'defer' || failsPod(each.name)))
      .flatMap(({ name, status }) => {
        const exit = status?.state?.terminated;
        const run = { container: name, kind, attempt: status?.restartCount };
        return exit === undefined ? [] : { ...exit, finishedAt: exit.finishedAt ?? '', ...run };
      })
      // An entry that was not due has an exit code, too.
      .filter(({ exitCode, message }) => exitCode !== 0 && (kind !== 'defer' || !isNotDue(message)))
      .sort((a, b) => a.finishedAt.localeCompare(b.finishedAt));
  return (['app', 'init', 'defer'] as const).flatMap(ofKind);
}

const endOf = (pod: Pod): string => failedExits(pod)[0]?.finishedAt ?? '';

/** Returns the code of the first of failedExits(); 1 if no container of the Pod has failed, for example after an eviction. */
export const exitCodeOf = (pod: Pod): number => failedExits(pod)[0]?.exitCode ?? 1;

/** The reason of a container whose program ended with an error. The program itself has usually reported the error. */
const PROGRAM_FAILED = 'Error';

/**
 * Returns the Pod's own reason; without one, why the node stopped the container, else the reason of its exit. Returns {} if the reason is
 * Error or unknown.
 */
function causeOf(pod: Pod, steps: readonly Transition[]): { cause?: string } {
  const [exit] = failedExits(pod);
  if (pod.status?.reason === undefined && exit !== undefined && exit.kind !== 'defer') {
    const { kind, container: name } = exit;
    const stop = stopOf({ pod, events: [], transitions: steps }, { kind, name }, exit);
    if (stop !== undefined) return { cause: stop.cause };
  }
  const { reason, message } = pod.status?.reason === undefined ? (exit ?? {}) : pod.status;
  if (reason === undefined || reason === PROGRAM_FAILED) return {};
  const known = FAILED_START_REASONS.includes(reason) ? commandError(message) : undefined;
  if (known !== undefined) return { cause: `container ${exit?.container} ${known}` };
  return { cause: message ? `${reason}: ${message}` : reason };
}

export interface Obstacle {
  text: string;
  /** Several obstacles of a Pod may have the same cause. The user needs to read only one of them. */
  cause: string;
  /** Empty if there is no action, or if `text` names the actions. */
  hint: string;
  /** Whether the obstacle remains until the user changes the Pod or loads its image. */
  isFinal: boolean;
}

/** Reasons of `waiting` that last until the user changes the Pod or loads its image. */
const FINAL_REASONS = ['ErrImageNeverPull'];
/** Reasons of `waiting` that may end without a change of the Pod. */
const PASSING_REASONS = ['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError'];

export interface PodFacts {
  hints: Hints;
  /** Facts from earlier statuses of the Pod. Absent: no container has run. */
  runs?: ContainerRuns | undefined;
  node?: Node | undefined;
  nodes?: readonly Node[] | undefined;
  otherPods?: readonly Pod[];
  event?: CoreV1Event | undefined;
  now?: number;
}

/** Returns what keeps the Pod from starting; undefined if it starts, runs, is being deleted or has ended. */
export function obstacleOf(pod: Pod, facts: PodFacts): Obstacle | undefined {
  if (hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    const { cause, action } = unschedulable(subjectOf(pod, facts));
    const text = `no node can run it: ${cause}`;
    return { text, cause: text, hint: actionsText([action]), isFinal: false };
  }
  const waiting = startedContainers(pod).flatMap((each) => waitingOf(pod, each, facts) ?? []);
  const problem = facts.event && preparationProblem(pod, facts.event, facts.hints, facts.now ?? 0);
  // Containers fail if their sandbox ends, so the problem of the sandbox comes first.
  const first = isSandboxChange(facts.event) ? (problem ?? waiting[0]) : (waiting[0] ?? problem);
  return waiting.find(({ isFinal }) => isFinal) ?? first;
}

function waitingOf(pod: Pod, container: PodContainer, facts: PodFacts): Obstacle | undefined {
  const { hints, node, runs = NO_RUNS } = facts;
  const { kind, name, status } = container;
  // Between two attempts to start the container, `waiting` has other reasons, so a failed start is checked first.
  const failedStart = failedStartOf(container, runs);
  if (failedStart !== undefined) {
    const text = `container ${name}: ${failedStart}`;
    return { text, cause: text, hint: '', isFinal: false };
  }
  const { reason = '', message = '' } = status?.state?.waiting ?? {};
  const isFinal = FINAL_REASONS.includes(reason);
  if (status !== undefined && hasInvalidName(status)) {
    const text = invalidNameText(pod, { ...container, status });
    return { text, cause: text, hint: imageNameRule(wantedImage(pod, { name, status }).reference), isFinal: true };
  }
  if (status !== undefined && lacksImage(status)) {
    const { reference, volume } = wantedImage(pod, { name, status });
    const owner = volume === undefined ? `container ${name}` : `volume ${volume.name}`;
    const text = `${owner}: the image ${reference} ${lackOfImage(status)}`;
    // The reason alternates between ErrImagePull and ImagePullBackOff.
    const cause = `${owner}: image`;
    return { text, cause, hint: imageHint({ pod, hints, node }, { kind, name, status }), isFinal };
  }
  if (!isFinal && !PASSING_REASONS.includes(reason)) return undefined;
  const { cause, actions } = startFinding(subjectOf(pod, facts), name, reason, oneLine(message) || reason);
  const text = `${called(container)} ${cause}`;
  return { text, cause: text, hint: actionsText(actions), isFinal };
}

export const subjectOf = (pod: Pod, facts: PodFacts, now = 0): Living => ({
  name: pod.metadata.name,
  namespace: pod.metadata.namespace ?? '',
  pod,
  events: [],
  transitions: [],
  lastLines: {},
  ...facts,
  now,
});

/** How long an obstacle that is not final may last before the Pod counts as unable to start. */
export const OBSTACLE_MILLIS = 120_000;

/** The Pods with an obstacle, and the Jobs that cannot create Pods, by UID. `since`: when the object began to have any obstacle. */
export type Obstructed = ReadonlyMap<string, { since: number; title: string; obstacle: Obstacle }>;

/** Returns the obstacles after a change of the Pod. `since` remains the same while the Pod has any obstacle. `now` is in milliseconds. */
export function withObstacle(before: Obstructed, pod: Pod, isGone: boolean, now: number, facts: PodFacts): Obstructed {
  const [after, uid] = [new Map(before), uidOf(pod)];
  const obstacle = isGone ? undefined : obstacleOf(pod, { ...facts, now });
  if (obstacle === undefined) after.delete(uid);
  else after.set(uid, { since: before.get(uid)?.since ?? now, title: `pod/${pod.metadata.name}`, obstacle });
  return after;
}

/** Returns the obstacles after a change of the Job. `refusal`: why it cannot create Pods; undefined if it can or has some. */
export function withRefusal(before: Obstructed, job: Job, refusal: Refusal | undefined, now: number): Obstructed {
  const [after, uid] = [new Map(before), uidOf(job)];
  if (refusal === undefined) after.delete(uid);
  else {
    const { text, cause, hint } = refusal;
    const obstacle = { text: `it has no Pods: ${text}`, cause, hint: actionsText(hint ? [hint] : []), isFinal: false };
    after.set(uid, { since: before.get(uid)?.since ?? now, title: `job/${job.metadata.name}`, obstacle });
  }
  return after;
}

/**
 * Returns a sentence about a Pod or Job that cannot start, or when to ask again; undefined if none has an obstacle. It cannot start if its
 * obstacle is final or has lasted for OBSTACLE_MILLIS.
 */
export function giveUp(obstructed: Obstructed, now: number): { because: string } | { askAt: number } | undefined {
  const due = [...obstructed.values()]
    .map((each) => ({ ...each, at: each.obstacle.isFinal ? each.since : each.since + OBSTACLE_MILLIS }))
    .sort((a, b) => a.at - b.at);
  const [first] = due;
  if (first === undefined) return undefined;
  const final = due.find(({ obstacle, at }) => obstacle.isFinal || at <= now);
  if (final === undefined) return { askAt: first.at };
  const { title, obstacle } = final;
  return {
    because: `${title} cannot start${obstacle.isFinal ? '' : ` for ${OBSTACLE_MILLIS / 1000} s`}: ${withHint(obstacle)}`,
  };
}

export const withHint = ({ text, hint }: Obstacle): string => (hint === '' ? text : `${text}; ${hint}`);
