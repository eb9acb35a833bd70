/**
 * Decides whether a Pod is well, for `lifepod status`. Pure.
 *
 * A Pod is well if it runs and is ready, if it has succeeded, or if it is starting, pulling, initializing or terminating in time. A defer
 * container that waits to be retried, or cannot start, is a trouble also before the deadline. If the user may not read Events or records,
 * some troubles are found later.
 * Invariant: the first of RULES that applies decides. The rules have the order of those of explain(), so that both report the same trouble.
 */
import { podSummary } from '../../api/core/v1/pod/status/summary.ts';
import type { Container, ContainerStatus, Pod, Probe } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { podContainers, statusWord, waitingProblem } from '../pod-containers.ts';
import { awaitsDeadline, deadlineOf, isEnding } from '../why/ending-phrases.ts';
import {
  downRuntime,
  explainDownRuntime,
  explainLostNode,
  explainNode,
  explainUnreported,
} from '../why/node-troubles.ts';
import { isStopping } from '../why/stops/node-stop.ts';
import {
  activeBound,
  conditionOf,
  controllerOf,
  endedWithNode,
  eventOf,
  type Living,
  lastStep,
  lastTime,
  type Shown,
  shownContainers,
} from '../why/subject.ts';
import { explainEndedSandbox, explainWaiting, stoppingContainer } from '../why/waiting.ts';

export interface PodTrouble {
  /** One word, such as ErrImagePull, NotReady or FailedMount. */
  reason: string;
  since: Millis | undefined;
}

/** Returns undefined if the rule does not apply. The next rule then decides. */
type Rule = (subject: Living) => PodTrouble | 'well' | undefined;

/** A node may need this time after the deadline of a termination to kill containers and to remove the Pod. */
const KILL_MILLIS = 10_000;
/** The scheduler usually handles a new Pod within this time. */
const SCHEDULING_MILLIS = 10_000;
/** A Pod whose containers are all ready usually becomes ready within this time. */
const READY_MILLIS = 10_000;

/** Matches the values of kubectl's column STATUS that are no trouble, or about which another rule decides. */
const USUAL =
  /^(Running|Completed|Succeeded|Pending|ContainerCreating|PodInitializing|Terminating|NotReady|Init:\d+\/\d+|Defer:\d+\/\d+)?$/;

/** Until a node has reported its state, `lifepod status` only reports that the node is starting. */
const ofUnreported: Rule = (subject) => (explainUnreported(subject) === undefined ? undefined : 'well');

const ofEnding: Rule = (subject) => {
  const { termination } = subject.pod.status ?? {};
  if (!isEnding(subject)) return undefined;
  const deadline = deadlineOf(subject);
  // The deadline may have passed while the machine was off.
  const end =
    deadline === undefined || awaitsDeadline(subject) ? subject.now : Math.max(deadline, subject.rebootedAt ?? 0);
  if (subject.now > end + KILL_MILLIS) return { reason: 'PastDeadline', since: deadline };
  for (const { kind, name, status } of shownContainers(subject)) {
    const reason = kind === 'defer' ? waitingProblem(status) : undefined;
    if (reason !== undefined)
      return { reason, since: failingSince(subject, name) ?? parseTime(termination?.turn?.since) };
  }
  return 'well';
};

const ofOutcome: Rule = (subject) => {
  const { phase, reason } = subject.pod.status ?? {};
  if (phase === 'Succeeded') return 'well';
  if (phase !== 'Failed' && phase !== 'Unknown') return undefined;
  // The controller creates another Pod, which `lifepod status` judges separately.
  if (endedWithNode(subject) && controllerOf(subject.pod) !== undefined) return 'well';
  const since = phase === 'Failed' ? failedSince(subject) : unreadySince(subject);
  return { reason: reason || statusWord(subject.pod) || phase, since };
};

const ofScheduling: Rule = (subject) => {
  const { metadata, spec } = subject.pod;
  if (spec?.nodeName) return undefined;
  const scheduled = conditionOf(subject, 'PodScheduled');
  if (scheduled?.status === 'False')
    return { reason: scheduled.reason ?? 'Unschedulable', since: parseTime(scheduled.lastTransitionTime) };
  const created = parseTime(metadata.creationTimestamp);
  const isNew = created === undefined || subject.now - created < SCHEDULING_MILLIS;
  return isNew ? 'well' : { reason: 'NotScheduled', since: created };
};

const ofNode: Rule = (subject) => {
  if (explainNode(subject) === undefined) return undefined;
  const since = parseTime(subject.pod.metadata.creationTimestamp);
  return { reason: subject.nodes?.length === 0 ? 'NodeNotFound' : 'NodeNotReady', since };
};

const ofRuntime: Rule = (subject) =>
  explainDownRuntime(subject) && { reason: 'NodeNotReady', since: downRuntime(subject.node)?.since };

const ofWaiting: Rule = (subject) => {
  if (explainEndedSandbox(subject) !== undefined) return { reason: 'SandboxChanged', since: unreadySince(subject) };
  for (const { kind, name, status } of shownContainers(subject)) {
    const reason = kind === 'defer' ? undefined : waitingProblem(status);
    if (reason !== undefined) return { reason, since: failingSince(subject, name) ?? unreadySince(subject) };
  }
  if (explainWaiting(subject) === undefined) return undefined;
  // No container waits, so the trouble is that of the sandbox or the volumes.
  const isSandbox = lastStep(subject, ['SandboxFailed', 'SandboxReady'])?.type === 'SandboxFailed';
  return { reason: isSandbox ? 'FailedCreatePodSandBox' : 'FailedMount', since: unreadySince(subject) };
};

/** A container that the node stops because its image was changed is no trouble. */
const ofStopping: Rule = (subject) => {
  const step = stoppingContainer(subject)?.stop.step;
  // While the preStop hook runs, only an Event that is not a warning says that the image was changed, and such Events are not read.
  if (step === undefined)
    return shownContainers(subject).some((shown) => isStopping(subject, shown)) ? 'well' : undefined;
  if (step.type === 'ProbeFailing' || FAILED_PROBE.test(step.message ?? ''))
    return { reason: 'Unhealthy', since: step.at };
  if (step.message === 'FailedPostStartHook') return { reason: 'PostStartHookError', since: step.at };
  const isLate = step.deadline !== undefined && subject.now > step.deadline + KILL_MILLIS;
  return isLate ? { reason: 'PastDeadline', since: step.deadline } : 'well';
};

const ofSummary: Rule = (subject) => {
  const { status } = podSummary(subject.pod);
  return USUAL.test(status) ? undefined : { reason: status, since: unreadySince(subject) };
};

const ofReadiness: Rule = (subject) => {
  const ready = conditionOf(subject, 'Ready');
  if (ready === undefined || ready.status === 'True') return undefined;
  const since = parseTime(ready.lastTransitionTime);
  const shown = shownContainers(subject).filter(({ kind }) => kind === 'app' || kind === 'init');
  const unready = shown.filter(({ status }) => !status.ready && status.state?.running !== undefined);
  if (explainLostNode(subject) !== undefined) return { reason: 'NodeNotReady', since };
  if (unready.some((each) => failsProbe(subject, each))) return { reason: 'NotReady', since };
  if (ready.reason === 'ReadinessGatesNotReady') return { reason: 'ReadinessGatesNotReady', since };
  // A container that starts, or that has completed and is not restarted, is no trouble.
  const isReady = shown.every(({ kind, status }) => status.ready || (kind === 'init' && status.state?.terminated));
  const isLate = since !== undefined && subject.now - since > READY_MILLIS;
  return isReady && isLate ? { reason: ready.reason || 'NotReady', since } : undefined;
};

/** Reports a defer container that cannot get its image. The node pulls this image long before the turn of the container. */
const ofEntryImages: Rule = (subject) => {
  for (const { kind, name, status } of shownContainers(subject)) {
    const reason = kind === 'defer' ? waitingProblem(status) : undefined;
    if (reason !== undefined) return { reason, since: failingSince(subject, name) };
  }
  return undefined;
};

/** The reason is the one that the defer container would have in its turn. */
const ofEntryNeeds: Rule = ({ entryNeeds = [] }) =>
  entryNeeds.length === 0 ? undefined : { reason: 'CreateContainerConfigError', since: undefined };

/** Reports a container that the node has restarted for a failed probe, until it has run for longer than the probe takes to fail again. */
const ofRestarts: Rule = (subject) => {
  for (const { name, status } of shownContainers(subject)) {
    const stop = mayFailAgain(subject.pod, status, subject.now) ? probeStop(subject, name) : undefined;
    if (stop !== undefined) return { reason: 'Unhealthy', since: stop.at };
  }
  return undefined;
};

const RULES: readonly Rule[] = [
  ofUnreported,
  ofEnding,
  ofOutcome,
  ofScheduling,
  ofNode,
  ofRuntime,
  ofWaiting,
  ofStopping,
  ofSummary,
  ofReadiness,
  ofEntryImages,
  ofEntryNeeds,
  ofRestarts,
];

export function podTrouble(subject: Living): PodTrouble | undefined {
  for (const rule of RULES) {
    const decision = rule(subject);
    if (decision !== undefined) return decision === 'well' ? undefined : decision;
  }
  return undefined;
}

/**
 * Returns since when the Pod has not been ready; undefined if it is ready. Without a condition Ready, returns the start of the Pod, or its
 * creation if it has not started.
 */
function unreadySince(subject: Living): Millis | undefined {
  const { metadata, status } = subject.pod;
  const ready = conditionOf(subject, 'Ready');
  if (ready?.status === 'True') return undefined;
  return parseTime(ready?.lastTransitionTime ?? status?.startTime ?? metadata.creationTimestamp);
}

/**
 * Returns the latest of the times that precede the change of the phase to Failed: the node may end a Pod long after the last run of a
 * container, or without any run.
 */
function failedSince(subject: Living): Millis | undefined {
  const { status } = subject.pod;
  const disruption = conditionOf(subject, 'DisruptionTarget');
  const times = [
    ...shownContainers(subject).map((shown) => parseTime(shown.status.state?.terminated?.finishedAt)),
    disruption?.status === 'True' ? parseTime(disruption.lastTransitionTime) : undefined,
    lastStep(subject, ['Finished'])?.at,
    status?.reason === 'DeadlineExceeded' ? activeBound(subject.pod).at : undefined,
  ].filter((time) => time !== undefined);
  return times.length > 0 ? Math.max(...times) : unreadySince(subject);
}

/** A container that fails again within this time keeps failing: a back-off lasts up to 5 min, and a run of 10 min resets it. */
const STREAK_MILLIS = 15 * 60_000;

/** Returns the time of the first failure in the latest series of failures of the container. */
function failingSince({ transitions }: Living, container: string): Millis | undefined {
  let since: Millis | undefined;
  const steps = transitions.filter((each) => each.container === container).sort((a, b) => b.at - a.at);
  const isFailure = ({ type }: Transition): boolean => type === 'BackOff' || type === 'PullFailed';
  // A container that starts has its image, which may have been loaded instead of pulled. One that keeps restarting starts each time.
  const ends = steps.find(isFailure)?.type === 'PullFailed' ? ['Pulled', 'Started'] : ['Pulled'];
  for (const step of steps) {
    if (isFailure(step) && (since === undefined || since - step.at < STREAK_MILLIS)) since = step.at;
    else if (isFailure(step) || ends.includes(step.type)) break;
  }
  return since;
}

/**
 * Returns whether a probe of the running container fails: an Event reports the failure, or the container should have become ready by now.
 */
function failsProbe(subject: Living, { name, status }: Shown): boolean {
  const { initContainers = [], containers = [] } = subject.pod.spec ?? {};
  const spec: Container | undefined = [...initContainers, ...containers].find((each) => each.name === name);
  const { startupProbe, readinessProbe } = spec ?? {};
  const started = parseTime(status.state?.running?.startedAt);
  // A container without probes does not become ready late. For example, an init container is not ready while it runs.
  if (started === undefined || (startupProbe === undefined && readinessProbe === undefined)) return false;
  const event = eventOf(subject, ['Unhealthy', 'ProbeWarning'], name);
  // Timestamps are whole seconds, so an Event of this run may have the same timestamp as its start.
  if (event !== undefined && lastTime(event) >= started && status.started !== false) return true;
  const limit = periodOf(status.started === true ? undefined : startupProbe) + periodOf(readinessProbe ?? {});
  return subject.now - started > limit;
}

/** Returns whether the container was restarted so recently that its startup or liveness probe may not have failed again yet. */
export function mayFailAgain({ spec }: Pod, { name, state, lastState }: ContainerStatus, now: Millis): boolean {
  const started = parseTime(state?.running?.startedAt);
  if (started === undefined || lastState?.terminated === undefined) return false;
  const own = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].find((each) => each.name === name);
  const limit = periodOf(own?.startupProbe) + periodOf(own?.livenessProbe);
  return limit > 0 && now - started <= limit;
}

/** Returns whether a liveness probe has failed in the current run of a container, by an Event. The Pod may still be ready then. */
export const hasFailedLivenessProbe = (subject: Pick<Living, 'pod' | 'events'>): boolean =>
  podContainers(subject.pod).some(({ name, status }) => {
    const started = parseTime(status?.state?.running?.startedAt);
    const events = subject.events.filter(({ message }) => /^Liveness probe/.test(message ?? ''));
    const event = eventOf({ events }, ['Unhealthy'], name);
    return started !== undefined && event !== undefined && lastTime(event) >= started;
  });

/** Returns the step with which the node stopped the previous run for a failed probe; undefined if that run ended otherwise. */
function probeStop({ transitions }: Living, container: string): Transition | undefined {
  const own = transitions.filter((step) => step.container === container);
  const exit = own.findLast(({ type }) => type === 'Exited');
  const stop = own.findLast(({ type, message = '' }) => type === 'StopSignal' && FAILED_PROBE.test(message));
  return stop?.attempt === exit?.attempt ? stop : undefined;
}

/** Source: the messages of the kubelet. */
const FAILED_PROBE = /failed (startup|liveness) probe/;

/** Returns how long a probe takes to fail; 0 if there is no probe. Source: the defaults of v1.33. */
export const periodOf = (probe: Probe | undefined): Millis =>
  probe === undefined
    ? 0
    : ((probe.initialDelaySeconds ?? 0) + (probe.periodSeconds ?? 10) * (probe.failureThreshold ?? 3)) * 1000;
