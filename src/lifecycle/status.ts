/**
 * The status of a Pod as the API shows it: container states, conditions, phase.
 * Source: Pod Lifecycle, "Pod phase", "Container states", "Pod conditions" (v1.33).
 */
import type { ContainerStatus, PodStatus } from '../api/generated/types.ts';
import type { ObjectMeta } from '../machinery/meta.ts';
import { formatTime, type Millis } from '../machinery/time.ts';
import { conditionsOf } from './conditions.ts';
import type { DeferList } from './defer.ts';
import { deferStatuses, isDeferring, terminationStatus } from './defer-status.ts';
import { hasStarted } from './hooks.ts';
import { isReady, isStarted } from './probes.ts';
import { missingTarget, type Progress } from './progress.ts';
import { isBeforePull, pullMessage } from './pulls.ts';
import { restartAfter, wantsRestart } from './restart.ts';
import type { Turn } from './turn.ts';
import {
  actionKey,
  type ContainerState,
  type Failure,
  runKey,
  type Termination,
  type TerminationReason,
} from './types.ts';
import { withUnknownEnds } from './unknown-ends.ts';
import { type ContainerView, isLive, isRunning, isStarting } from './view.ts';

type State = NonNullable<ContainerStatus['state']>;

export interface StatusInput extends Turn {
  termination: Termination | undefined;
  /** The defer containers, once the Pod ends. */
  list: DeferList | undefined;
  progress: Progress;
  startedAt: Millis;
  /** Nothing runs any more. */
  stopped: boolean;
}

export function statusOf(given: StatusInput): PodStatus {
  const { input, view, termination, startedAt } = given;
  const old = input.pod.status ?? {};
  const { generation } = input.pod.metadata;
  const seen = {
    init: view.init.map((each) => containerStatus(each, old.initContainerStatuses, given)),
    apps: view.apps.map((each) => containerStatus(each, old.containerStatuses, given)),
  };
  const over = termination !== undefined && given.stopped;
  const { init: initContainerStatuses, apps: containerStatuses } = over ? withUnknownEnds(seen) : seen;
  const ephemeralContainerStatuses = view.ephemeral.map((each) =>
    containerStatus(each, old.ephemeralContainerStatuses, given),
  );
  const sandboxIps = view.spec.hostNetwork === true ? input.node.ips : (view.sandbox?.ips ?? []);
  const ips = view.sandbox?.ready ? sandboxIps : (old.podIPs ?? []).map(({ ip }) => ip);
  const phase = phaseOf(given, containerStatuses);
  const status: PodStatus = {
    ...old,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    phase,
    conditions: conditionsOf(given, phase, initContainerStatuses, containerStatuses),
    startTime: old.startTime ?? formatTime(startedAt),
    ...(input.node.ips[0] === undefined
      ? {}
      : { hostIP: input.node.ips[0], hostIPs: input.node.ips.map((ip) => ({ ip })) }),
    ...(ips[0] === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
    ...(initContainerStatuses.length === 0 ? {} : { initContainerStatuses }),
    containerStatuses,
    ...(ephemeralContainerStatuses.length === 0 ? {} : { ephemeralContainerStatuses }),
    ...defined('deferContainerStatuses', deferStatuses(given)),
    ...defined('termination', terminationStatus(given)),
  };
  const told = failedBy(given);
  if (told !== undefined && phase === 'Failed') {
    status.reason = told.reason;
    const byNode = input.nodeEnd?.reason === termination?.reason ? input.nodeEnd?.message : undefined;
    status.message = byNode ?? old.message ?? told.message;
  }
  return status;
}

const defined = <K extends string, V>(key: K, value: V | undefined): Partial<Record<K, V>> =>
  value === undefined ? {} : ({ [key]: value } as Partial<Record<K, V>>);

/** The ends that make a Pod Failed whatever its containers say. Source: the kubelet of v1.33 (reasons and messages). */
const FAILED_BY: Partial<Record<TerminationReason, { reason: string; message: string }>> = {
  DeadlineExceeded: {
    reason: 'DeadlineExceeded',
    message: 'Pod was active on the node longer than the specified deadline',
  },
  NodePressure: { reason: 'Evicted', message: 'The node was low on resources.' },
  NodeShutdown: { reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' },
  Preempted: { reason: 'Preempting', message: 'Preempted in order to admit critical pod' },
};

/** A Pod that the scheduler preempts is deleted; one that its node does fails. */
const failedBy = ({ termination, input }: StatusInput): { reason: string; message: string } | undefined =>
  termination === undefined || (termination.reason === 'Preempted' && input.nodeEnd?.reason !== 'Preempted')
    ? undefined
    : FAILED_BY[termination.reason];

function containerStatus(
  container: ContainerView,
  old: ContainerStatus[] | undefined,
  given: StatusInput,
): ContainerStatus {
  const { input } = given;
  const { name, image = '' } = container.spec;
  const run = container.latest;
  const recorded = old?.find((status) => status.name === name);
  if (run === undefined && recorded !== undefined && recordEnded(recorded)) return recorded;

  const { state, lastState } = containerStates(container, recorded, given);
  const running = state.running !== undefined;
  const completedInit = container.kind === 'init' && !container.sidecar && state.terminated?.exitCode === 0;
  return {
    name,
    state,
    lastState,
    ready: completedInit || ((container.kind === 'app' || container.sidecar) && running && isReady(given, container)),
    restartCount: run?.attempt ?? recorded?.restartCount ?? 0,
    image: run?.image ?? image,
    imageID: run?.imageId ?? '',
    started: running && isStarted(given, container),
    ...(run === undefined ? {} : { containerID: `${input.node.runtimeName}://${run.id}` }),
  };
}

function containerStates(
  container: ContainerView,
  recorded: ContainerStatus | undefined,
  given: StatusInput,
): { state: State; lastState: State } {
  const { input, view } = given;
  const { latest: run, runs } = container;
  const ended = (each: ContainerState): State => ({ terminated: terminatedState(each, input.node.runtimeName) });
  const lastState = runs[1]?.state === 'exited' ? ended(runs[1]) : (recorded?.lastState ?? {});
  const toStart: State = { waiting: beforeStart(given) };

  const waiting = waitingState(container, given);
  if (waiting !== undefined) return { state: { waiting }, lastState: run?.state === 'exited' ? ended(run) : lastState };
  const starting = run?.state === 'created' || (run?.state === 'running' && !hasStarted(view, container, run));
  if (run === undefined || starting) return { state: toStart, lastState };
  if (run.state !== 'exited') {
    return { state: { running: { startedAt: formatTime(run.startedAt ?? run.createdAt) } }, lastState };
  }
  return startsOver(container, run, given)
    ? { state: toStart, lastState: ended(run) }
    : { state: ended(run), lastState };
}

/** Of a container that only waits for its turn or for the volumes: what these failed with. */
function beforeStart({ input, view }: StatusInput): NonNullable<State['waiting']> {
  const reason = view.init.length > 0 ? 'PodInitializing' : 'ContainerCreating';
  const failure = input.observed.failures['mountVolumes'];
  if (failure === undefined) return { reason };
  if (isBackingOff('mountVolumes', failure, input)) return backOff(failure.image ?? '', failure);
  return { reason: failure.reason === 'FailedMount' ? reason : failure.reason, message: failure.message };
}

/** The image of a volume that could not be pulled is waited for. */
export const isBackingOff = (key: string, { at, image }: Failure, { observed, now }: StatusInput['input']): boolean =>
  image !== undefined && !observed.inFlight.has(key) && now - at >= ERR_IMAGE_PULL_SHOWN_MILLIS;

const backOff = (image: string, { reason, message }: Failure): NonNullable<State['waiting']> => ({
  reason: 'ImagePullBackOff',
  message: `Back-off pulling image "${image}": ${reason}: ${message}`,
});

/** The run belongs to a sandbox that was lost, and the container's turn in the new one is still to come. */
const startsOver = (
  container: ContainerView,
  run: ContainerState,
  { view, stops, termination, progress }: StatusInput,
): boolean =>
  container.kind !== 'ephemeral' &&
  termination === undefined &&
  progress.stage !== 'finished' &&
  view.sandbox?.ready === true &&
  container.current === undefined &&
  (container.kind === 'init' || wantsRestart(container, view.restartPolicy, run, stops));

const recordEnded = (status: ContainerStatus): boolean => status.state?.terminated !== undefined;

export function terminatedState(run: ContainerState, runtimeName: string): NonNullable<State['terminated']> {
  const exitCode = run.exitCode ?? 137;
  return {
    exitCode,
    reason: run.reason || (exitCode === 0 ? 'Completed' : 'Error'),
    ...(run.message ? { message: run.message } : {}),
    ...(run.startedAt === undefined ? {} : { startedAt: formatTime(run.startedAt) }),
    finishedAt: formatTime(run.finishedAt ?? run.createdAt),
    containerID: `${runtimeName}://${run.id}`,
  };
}

/** Why the next run of a container has not begun, where there is more to say than that its turn has not come. */
export function waitingState(container: ContainerView, given: StatusInput): State['waiting'] | undefined {
  const { input, view, stops, termination } = given;
  const { latest, current } = container;
  if (termination !== undefined || given.progress.stage === 'finished') return undefined;
  const hook = current === undefined ? undefined : input.observed.hooks[runKey(current.id, 'postStart')]?.failure;
  const hooked = hook === undefined ? undefined : { reason: 'PostStartHookError', message: hook };
  if (isLive(current)) return hooked;
  if (latest?.state === 'exited' && latest === current) {
    if (!wantsRestart(container, view.restartPolicy, latest, stops)) return undefined;
    const restart = restartAfter(latest, stops);
    if (restart.at > input.now)
      return { reason: 'CrashLoopBackOff', message: crashLoopMessage(container, latest, given) };
  }
  return failedToStart(container, given) ?? hooked;
}

const podInFull = ({ name, namespace = 'default', uid }: ObjectMeta): string => `${name}_${namespace}(${uid})`;

export function crashLoopMessage({ spec }: ContainerView, run: ContainerState, { input, stops }: StatusInput): string {
  const delay = goDuration(restartAfter(run, stops).delaySeconds);
  return `back-off ${delay} restarting failed container=${spec.name} pod=${podInFull(input.pod.metadata)}`;
}

/** Of the Event. */
export const backOffMessage = ({ spec }: ContainerView, { input }: StatusInput): string =>
  `Back-off restarting failed container ${spec.name} in pod ${podInFull(input.pod.metadata)}`;

/** How the pull of the next run's image goes, or what the last try of it or of the start failed with. */
function failedToStart(container: ContainerView, { input, view }: StatusInput): State['waiting'] | undefined {
  const { spec, nextAttempt } = container;
  const { failures, images } = input.observed;
  const about = { container: spec.name, attempt: nextAttempt };
  const image = spec.image ?? '';
  const pullKey = actionKey({ kind: 'pullImage', ...about, image });
  const message = pullMessage(image, input.observed.pulls?.[pullKey]);
  if (message !== undefined) return { reason: view.init.length > 0 ? 'PodInitializing' : 'ContainerCreating', message };
  const pull = failures[pullKey];
  if (pull !== undefined) {
    const retrying = input.observed.inFlight.has(pullKey);
    const fresh = retrying || isBeforePull(pull) || input.now - pull.at < ERR_IMAGE_PULL_SHOWN_MILLIS;
    return fresh ? { reason: pull.reason, message: pull.message } : backOff(image, pull);
  }
  const other =
    failures[actionKey({ kind: 'checkImage', ...about, image, mustExist: false })] ??
    failures[`startContainer/${spec.name}/${nextAttempt}`];
  if (other !== undefined) return { reason: other.reason, message: other.message };
  const isDue = nextAttempt === 0 && images[spec.name]?.state === 'present';
  const target = isDue ? missingTarget(view, container) : undefined;
  return target === undefined ? undefined : { reason: 'CreateContainerConfigError', message: target };
}

/** How long a failed pull shows as ErrImagePull before it shows as waiting for the next try. */
export const ERR_IMAGE_PULL_SHOWN_MILLIS = 1000;

/** Seconds as Go prints a duration: 10s, 1m20s, 5m0s. */
export function goDuration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
}

/**
 * A phase that is final stays, and does not come while something of the Pod may still run: what it had reserved counts
 * as free from then on. Source: the kubelet's status manager of v1.33.
 */
function phaseOf(given: StatusInput, apps: ContainerStatus[]): string {
  const { input, view } = given;
  if (isDeferring(given)) return 'Terminating';
  const recorded = input.pod.status?.phase ?? 'Pending';
  // The list has ended, and sidecars have not: what the phase was before.
  const old = recorded === 'Terminating' ? (apps.every(hasBegun) ? 'Running' : 'Pending') : recorded;
  if (isFinal(old)) return old;
  const phase = phaseReached(given, apps);
  return isFinal(phase) && (isStarting(view) || view.observed.containers.some(isRunning)) ? old : phase;
}

const isFinal = (phase: string): boolean => phase === 'Succeeded' || phase === 'Failed';

/** Source: the table of phases in Pod Lifecycle (v1.33). */
function phaseReached(given: StatusInput, apps: ContainerStatus[]): string {
  const { view, termination, stopped } = given;
  if (failedBy(given) !== undefined) return 'Failed';
  if (given.progress.stage === 'finished' && given.progress.failedInit !== undefined) return 'Failed';

  const ended = apps.filter((status) => status.state?.terminated !== undefined);
  const wentWell = ended.length === apps.length && ended.every((status) => status.state?.terminated?.exitCode === 0);
  if ((termination !== undefined && stopped) || given.progress.stage === 'finished')
    return wentWell ? 'Succeeded' : 'Failed';

  const initialized = view.initialized || given.progress.stage === 'running';
  return initialized && apps.every(hasBegun) ? 'Running' : 'Pending';
}

const hasBegun = ({ state, lastState }: ContainerStatus): boolean =>
  state?.waiting === undefined || lastState?.terminated !== undefined;
