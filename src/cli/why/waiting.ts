/** Explains why a scheduled Pod has not started yet or keeps restarting. Pure. */
import { type Millis, parseTime } from '../../machinery/time.ts';
import { lacksImage } from '../pod-containers.ts';
import { FAILED_START_REASONS, failedStart, volumeFinding } from './failed-start.ts';
import { missingImage } from './images.ts';
import { sandboxFinding } from './needs/sandbox.ts';
import { codeText, endOfRun, restartText } from './run-end.ts';
import { unstartedCause } from './running.ts';
import { currentStop, hookCause, isStopping, type NodeStop } from './stops/node-stop.ts';
import { processEvidence } from './stops/pid-one.ts';
import {
  ago,
  called,
  conditionOf,
  type Explanation,
  eventLine,
  eventOf,
  forTime,
  inTime,
  type Living,
  lastStep,
  oneLine,
  runningHook,
  type Shown,
  seeOutput,
  seeStatus,
  shownContainers,
  sidecarsOf,
} from './subject.ts';

const START_REASONS = [
  ...FAILED_START_REASONS,
  'CreateContainerError',
  'CreateContainerConfigError',
  'PostStartHookError',
  'Error',
];

export const SANDBOX_ENDED = 'its sandbox ends right after its start';
export const CHECK_SANDBOX_IMAGE =
  "make sure that the sandbox image of the container runtime is intact (containerd: 'containerd config dump' names it, under sandbox): its process must keep running; the node retries automatically";

/** A sandbox that lives this long counts as intact. Longer than the node's back-off between sandboxes. */
export const INTACT_MILLIS: Millis = 15_000;

/**
 * Explains a Pod whose images are missing, whose containers fail, or whose sandbox or volumes cannot be prepared; undefined for other Pods.
 */
export function explainWaiting(subject: Living): Explanation | undefined {
  // If the sandbox has ended, failures of its containers are a consequence.
  const ended = explainEndedSandbox(subject);
  if (ended !== undefined) return ended;
  const waiting = shownContainers(subject).filter(({ kind }) => kind !== 'defer');
  for (const shown of waiting) {
    const { reason = '', message = '' } = shown.status.state?.waiting ?? {};
    if (lacksImage(shown.status)) return missingImage(subject, shown);
    if (reason === 'CrashLoopBackOff') return restarting(subject, shown);
    if (reason === 'PostStartHookError') return failedHook(subject, shown, message);
    if (START_REASONS.includes(reason)) return failedStart(subject, shown, reason, message);
  }
  const begun = waiting.some(({ status }) => (status.containerID ?? '') !== '');
  return begun ? undefined : (sandbox(subject) ?? volumes(subject));
}

function failedHook(subject: Living, shown: Shown, message: string): Explanation {
  return {
    sentence: `${subject.name} cannot start: ${hookCause(subject.pod, shown, message)}.`,
    evidence: [
      'status.state.waiting.reason is PostStartHookError: the node stops the container when its hook has failed',
      ...eventLine(eventOf(subject, ['FailedPostStartHook'], shown.name), subject),
    ],
    actions: [
      { description: 'fix its postStart hook, or what the hook needs; to change the Pod, recreate it' },
      seeOutput(subject, shown.name),
    ],
  };
}

/** Returns the first container that the node is stopping and that has not ended yet, and why. */
export function stoppingContainer(subject: Living): { shown: Shown; stop: NodeStop } | undefined {
  for (const shown of shownContainers(subject)) {
    const stop = isStopping(subject, shown) ? currentStop(subject, shown) : undefined;
    if (stop !== undefined) return { shown, stop };
  }
  return undefined;
}

/** Explains a container that the node is stopping, for example because of a failed probe, and that has not ended yet. */
export function explainStopping(subject: Living): Explanation | undefined {
  const stopping = stoppingContainer(subject);
  if (stopping === undefined) return undefined;
  const { now, pod } = subject;
  const { shown, stop } = stopping;
  const { type, at, deadline } = stop.step;
  const hook = runningHook(subject, shown.name, 'preStop');
  const next = hook === undefined ? '' : `; its preStop hook has been running for ${forTime(hook.at, now)}`;
  const kill = deadline === undefined ? next : `; it will be killed ${inTime(deadline, now)} if it has not ended`;
  return {
    sentence: `${subject.name} is stopping ${called(shown)}: ${stop.cause}${kill}.`,
    evidence:
      type === 'StopSignal'
        ? [`stop signal sent ${ago(at, now)}: ${stop.message}`, ...processEvidence(pod, shown.name)]
        : [`step ${type}, ${ago(at, now)}`, 'its stop signal has not been sent yet'],
    actions: [stop.action, seeOutput(subject, shown.name)],
  };
}

function restarting(subject: Living, shown: Shown): Explanation {
  const { name, now } = subject;
  const { status } = shown;
  const last = status.lastState?.terminated ?? status.state?.terminated;
  const backOff = lastStep(subject, ['BackOff'], shown.name);
  const next = restartText(subject, backOff?.deadline);
  if (last === undefined)
    return {
      sentence: `${name} keeps restarting: the end of the last run of ${called(shown)} is unknown${next}.`,
      evidence: [`it was restarted ${status.restartCount}×`],
      actions: [seeOutput(subject, shown.name, '--previous')],
    };
  const ended = parseTime(last.finishedAt);
  const { cause, evidence, actions } = endOfRun(subject, shown, last, true);
  return {
    sentence: `${name} keeps restarting: ${cause}${next}.`,
    evidence: [
      `${status.restartCount + 1} ${status.restartCount === 0 ? 'run' : 'runs'}${ended === undefined ? '' : `, the last one ended ${ago(ended, now)} with ${codeText(last)}`}`,
      ...evidence,
    ],
    actions,
  };
}

/**
 * Explains a Pod whose sandboxes end soon, before a container has started in them, usually because the sandbox image is broken. Returns
 * undefined if a container has started in the last sandbox that ended, or if this or a later sandbox has lived for INTACT_MILLIS.
 */
export function explainEndedSandbox(subject: Living): Explanation | undefined {
  const steps = subject.transitions.toSorted((a, b) => a.at - b.at);
  const ended = steps.findLast(({ type }) => type === 'SandboxLost');
  if (ended === undefined) return undefined;
  const ready = steps.findIndex(({ type, attempt }) => type === 'SandboxReady' && attempt === ended.attempt);
  const since = steps.slice(ready);
  if (ready < 0 || since.some(({ type }) => type === 'Started' || type === 'SandboxFailed')) return undefined;
  if (ended.at - (steps[ready]?.at ?? 0) > INTACT_MILLIS) return undefined;
  const next = since.findLast(({ type, attempt }) => type === 'SandboxReady' && attempt !== ended.attempt);
  if (next !== undefined && subject.now - next.at > INTACT_MILLIS) return undefined;
  const started = steps.findLastIndex(({ type }) => type === 'Started');
  const count = steps.slice(started + 1).filter(({ type }) => type === 'SandboxLost').length;
  return {
    sentence: `${subject.name} waits: ${SANDBOX_ENDED}${count > 1 ? `, ${count}× so far` : ''}.`,
    evidence: eventLine(eventOf(subject, ['SandboxChanged']), subject),
    actions: [{ description: CHECK_SANDBOX_IMAGE }],
  };
}

function sandbox(subject: Living): Explanation | undefined {
  const failed = lastStep(subject, ['SandboxFailed', 'SandboxReady']);
  if (failed?.type !== 'SandboxFailed') return undefined;
  const evidence = eventLine(eventOf(subject, ['FailedCreatePodSandBox']), subject);
  const found = sandboxFinding(subject.pod, oneLine(failed.message));
  if (found !== undefined)
    return {
      sentence: `${subject.name} ${found.isFinal ? 'cannot start' : 'waits'}: its sandbox cannot be created, because ${found.cause}.`,
      evidence,
      actions: found.actions,
    };
  return {
    sentence: `${subject.name} waits: its sandbox cannot be created, ${oneLine(failed.message)}.`,
    evidence,
    actions: [
      { description: 'wait: the node retries automatically' },
      seeStatus(subject, 'see whether containerd and the network are healthy'),
    ],
  };
}

function volumes(subject: Living): Explanation | undefined {
  const failed = lastStep(subject, ['MountFailed', 'VolumesMounted']);
  const event = eventOf(subject, ['FailedMount']);
  const isWaiting = failed === undefined ? event !== undefined : failed.type === 'MountFailed';
  if (!isWaiting) return undefined;
  const message = oneLine(failed?.message ?? event?.message);
  const volume = /for volume "([^"]+)"/.exec(message)?.[1];
  const found = volumeFinding(subject, message);
  return {
    sentence:
      found === undefined
        ? `${subject.name} waits for its volumes: ${message}.`
        : `${subject.name} waits for its volumes: ${volume === undefined ? 'one of them' : `the volume ${volume}`} ${found.cause}.`,
    evidence: event === undefined ? [`step MountFailed: ${message}`] : eventLine(event, subject),
    actions: found?.actions ?? [
      { description: 'fix the volume, or create what it needs: the node retries automatically' },
    ],
  };
}

/** Explains a Pod that is starting without problems: it pulls an image, or its init containers have not completed. */
export function explainStarting(subject: Living): Explanation | undefined {
  const { name, now } = subject;
  const pulling = lastStep(subject, ['Pulling', 'Pulled', 'PullFailed']);
  const shown = shownContainers(subject);
  const waits = (container: string | undefined): boolean =>
    shown.find((each) => each.name === container)?.status.state?.waiting !== undefined;
  if (pulling?.type === 'Pulling' && pulling.containerKind !== 'defer' && waits(pulling.container))
    return {
      sentence: `${name} is starting: it has been pulling the image ${pulling.message} of container ${pulling.container} for ${forTime(pulling.at, now)}.`,
      evidence: [`step Pulling, ${ago(pulling.at, now)}`],
      actions: [{ description: 'wait: the time depends on the size of the image and the speed of the registry' }],
    };
  if (conditionOf(subject, 'Initialized')?.status === 'True') return undefined;
  const sidecars = sidecarsOf(subject.pod);
  const init = shown.find(
    ({ kind, name: own, status }) =>
      kind === 'init' && status.state?.terminated?.exitCode !== 0 && !(sidecars.has(own) && status.started === true),
  );
  if (init === undefined) return undefined;
  const { running } = init.status.state ?? {};
  const begun = parseTime(running?.startedAt);
  const place = shown.filter(({ kind }) => kind === 'init').findIndex((each) => each.name === init.name) + 1;
  const count = subject.pod.spec?.initContainers?.length ?? 0;
  const runs = begun === undefined ? 'is running' : `has been running for ${forTime(begun, now)}`;
  const cause = `${called(init)} (${place} of ${count}) ${running === undefined ? 'is about to start' : runs}, and the containers after it wait for it`;
  const unstarted = unstartedCause(subject, init);
  return {
    sentence: `${name} is initializing: ${unstarted === undefined ? cause : `${unstarted.cause}; the containers after ${init.name} wait for it`}.`,
    evidence: [
      ...(unstarted?.evidence ?? []),
      ...(init.status.restartCount > 0 ? [`it was restarted ${init.status.restartCount}×`] : []),
      `condition Initialized is ${conditionOf(subject, 'Initialized')?.status ?? 'unknown'}`,
    ],
    actions: unstarted?.actions ?? [seeOutput(subject, init.name)],
  };
}
