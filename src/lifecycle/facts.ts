/**
 * What is worth an Event, as facts: each has a key, and is told once, when it becomes true.
 * Reasons and messages are the kubelet's (v1.33).
 */
import { formatDuration } from '../machinery/time.ts';
import { deferFacts } from './defer-status.ts';
import { missingTarget } from './progress.ts';
import { isBeforePull, pullMessage, quartersDone } from './pulls.ts';
import { backOffMessage, ERR_IMAGE_PULL_SHOWN_MILLIS, isBackingOff, type StatusInput, waitingState } from './status.ts';
import { actionKey, type ContainerState, type PodEvent, runKey } from './types.ts';
import { type ContainerView, isRunning } from './view.ts';

export type Facts = Map<string, PodEvent>;

/** All facts that hold now. */
export function factsOf(given: StatusInput): Facts {
  const facts: Facts = new Map();
  podFacts(given, facts);
  deferFacts(given, facts);
  for (const container of given.view.all) {
    imageFacts(container, given, facts);
    runFacts(container, given, facts);
  }
  return facts;
}

function podFacts({ input, view, termination }: StatusInput, facts: Facts): void {
  for (const [key, failure] of Object.entries(input.observed.failures)) {
    if (key.startsWith('createSandbox/'))
      facts.set(
        `${key}/${failure.count}`,
        warning('FailedCreatePodSandBox', `Failed to create pod sandbox: ${failure.message}`),
      );
    else if (key === 'mountVolumes' && failure.reason === 'FailedMount')
      facts.set(`${key}/${failure.count}`, warning('FailedMount', failure.message));
    else if (key === 'mountVolumes') {
      facts.set(`${key}/${failure.count}`, warning('Failed', `Error: ${failure.reason}`));
      if (isBackingOff(key, failure, input)) {
        facts.set(`backoff/${key}/${failure.count}`, normal('BackOff', `Back-off pulling image "${failure.image}"`));
        facts.set(`backoffError/${key}/${failure.count}`, warning('Failed', 'Error: ImagePullBackOff'));
      }
    } else if (key.startsWith('stopContainer/') || key.startsWith('stopSandbox/'))
      facts.set(`${key}/${failure.count}`, warning('FailedKillPod', `error killing pod: ${failure.message}`));
  }
  const { sandbox } = view;
  if (sandbox !== undefined && !sandbox.ready && termination === undefined && view.observed.containers.length > 0)
    facts.set(
      `sandboxChanged/${sandbox.id}`,
      normal('SandboxChanged', 'Pod sandbox changed, it will be killed and re-created.'),
    );
  if (termination?.reason === 'DeadlineExceeded')
    facts.set(
      'deadlineExceeded',
      normal('DeadlineExceeded', 'Pod was active on the node longer than the specified deadline'),
    );
}

/** The reasons of their own that Events have of an image that was looked for on the node. */
const TOLD_OF_LOOKS: Readonly<Record<string, string>> = {
  InvalidImageName: 'InspectFailed',
  ImageInspectError: 'InspectFailed',
  ErrImageNeverPull: 'ErrImageNeverPull',
};

function imageFacts(container: ContainerView, { input, plan }: StatusInput, facts: Facts): void {
  const { spec, fieldPath } = container;
  const image = spec.image ?? '';
  const { failures, images } = input.observed;
  for (const attempt of [container.nextAttempt - 1, container.nextAttempt]) {
    const pullKey = actionKey({ kind: 'pullImage', container: spec.name, attempt, image });
    const failure = failures[pullKey];
    if (plan.pending(pullKey)) {
      const pulling = `pulling/${pullKey}/${failure?.count ?? 0}`;
      const progress = input.observed.pulls?.[pullKey];
      facts.set(pulling, { ...normal('Pulling', `Pulling image "${image}"`), fieldPath });
      for (let quarter = 1; quarter <= quartersDone(progress); quarter++)
        facts.set(`${pulling}/${quarter}`, { ...normal('Pulling', pullMessage(image, progress) ?? ''), fieldPath });
    }
    const known = images[spec.name];
    // An image that was looked for ahead of the container's turn is told of when its turn has come.
    const begun =
      plan.pending(`startContainer/${spec.name}/${attempt}`) || container.runs.some((run) => run.attempt === attempt);
    if (
      known?.state === 'present' &&
      known.attempt === attempt &&
      known.image === image &&
      (begun || known.pulled !== undefined)
    ) {
      const message =
        known.pulled === undefined
          ? `Container image "${image}" already present on machine`
          : `Successfully pulled image "${image}" in ${pullTime(known.pulled.millis)} (${pullTime(known.pulled.withWaitingMillis ?? known.pulled.millis)} including waiting). Image size: ${known.pulled.sizeBytes} bytes.`;
      facts.set(`pulled/${spec.name}/${attempt}`, { ...normal('Pulled', message), fieldPath });
    }
    if (failure !== undefined && isBeforePull(failure)) {
      facts.set(`failed/${pullKey}/${failure.count}`, { ...warning('InspectFailed', failure.message), fieldPath });
      facts.set(`error/${pullKey}/${failure.count}`, { ...warning('Failed', `Error: ${failure.reason}`), fieldPath });
    } else if (failure !== undefined) {
      const key = `${pullKey}/${failure.count}`;
      facts.set(`failed/${key}`, {
        ...warning('Failed', `Failed to pull image "${image}": ${failure.message}`),
        fieldPath,
      });
      facts.set(`error/${key}`, { ...warning('Failed', `Error: ${failure.reason}`), fieldPath });
      if (!plan.pending(pullKey) && input.now - failure.at >= ERR_IMAGE_PULL_SHOWN_MILLIS) {
        facts.set(`backoff/${key}`, { ...normal('BackOff', `Back-off pulling image "${image}"`), fieldPath });
        facts.set(`backoffError/${key}`, { ...warning('Failed', 'Error: ImagePullBackOff'), fieldPath });
      }
    }
    const checkKey = actionKey({ kind: 'checkImage', container: spec.name, attempt, image, mustExist: false });
    for (const key of [checkKey, `startContainer/${spec.name}/${attempt}`]) {
      const failed = failures[key];
      if (failed === undefined) continue;
      const told = TOLD_OF_LOOKS[failed.reason];
      if (told !== undefined)
        facts.set(`inspected/${key}/${failed.count}`, { ...warning(told, failed.message), fieldPath });
      const error = told === undefined ? failed.message : failed.reason;
      facts.set(`${key}/${failed.count}`, { ...warning('Failed', `Error: ${error}`), fieldPath });
    }
  }
}

function runFacts(container: ContainerView, given: StatusInput, facts: Facts): void {
  const { spec, fieldPath } = container;
  for (const run of container.runs) {
    facts.set(`created/${run.id}`, { ...normal('Created', `Created container: ${spec.name}`), fieldPath });
    if (run.startedAt !== undefined)
      facts.set(`started/${run.id}`, { ...normal('Started', `Started container ${spec.name}`), fieldPath });
    const stop = given.stops[run.id];
    if (stop !== undefined || (isRunning(run) && isEnding(run, given)))
      facts.set(`killing/${run.id}`, {
        ...normal('Killing', stop?.message ?? `Stopping container ${spec.name}`),
        fieldPath,
      });
    hookFacts(container, run, given, facts);
    probeFacts(container, run, given, facts);
  }
  const waiting = waitingState(container, given);
  if (waiting?.reason === 'CrashLoopBackOff') {
    const message = backOffMessage(container, given);
    facts.set(`crashLoop/${container.latest?.id}`, { ...warning('BackOff', message), fieldPath });
  }
  const target = missingTarget(given.view, container);
  if (target !== undefined && target === waiting?.message)
    facts.set(`target/${spec.name}`, { ...warning('Failed', `Error: ${target}`), fieldPath });
}

/** Beside defer containers it goes on while its Pod ends, until it is told to stop. */
const isEnding = (run: ContainerState, { termination, list, signalledAt }: StatusInput): boolean =>
  termination !== undefined && (list === undefined || signalledAt[run.id] !== undefined);

/** What a hook answered may not be for everyone who reads Events: they tell that it failed, as upstream's do. */
function hookFacts({ fieldPath }: ContainerView, run: ContainerState, { input }: StatusInput, facts: Facts): void {
  for (const [hook, reason, message] of [
    ['postStart', 'FailedPostStartHook', 'PostStartHook failed'],
    ['preStop', 'FailedPreStopHook', 'PreStopHook failed'],
  ] as const) {
    const key = runKey(run.id, hook);
    if (input.observed.hooks[key]?.failure !== undefined)
      facts.set(`hook/${key}`, { ...warning(reason, message), fieldPath });
  }
}

function probeFacts({ fieldPath }: ContainerView, run: ContainerState, { input }: StatusInput, facts: Facts): void {
  for (const kind of ['startup', 'liveness', 'readiness'] as const) {
    const key = runKey(run.id, kind);
    const seen = input.observed.probes[key];
    if (seen === undefined || seen.result === 'Success') continue;
    const name = `${kind[0]?.toUpperCase()}${kind.slice(1)} probe`;
    const event = {
      Failure: warning('Unhealthy', `${name} failed: ${seen.message}`),
      Warning: warning('ProbeWarning', `${name} warning: ${seen.message}`),
      Unknown: warning('Unhealthy', `${name} errored and resulted in unknown state: ${seen.message}`),
    }[seen.result];
    facts.set(`probe/${key}/${seen.serial}`, { ...event, fieldPath });
  }
}

const normal = (reason: string, message: string): PodEvent => ({ type: 'Normal', reason, message });
const warning = (reason: string, message: string): PodEvent => ({ type: 'Warning', reason, message });

const pullTime = (millis: number): string => formatDuration(Math.trunc(millis));
