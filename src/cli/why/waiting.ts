/** Explains why a scheduled Pod has not started yet or keeps restarting, and which images its defer containers lack. Pure. */
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import { parseTime } from '../../machinery/time.ts';
import { imageOf, lacksImage } from '../pod-containers.ts';
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
  lastWords,
  listed,
  oneLine,
  type Shown,
  shownContainers,
  sidecarsOf,
  stopReason,
} from './subject.ts';

const START_REASONS = [
  'CreateContainerError',
  'RunContainerError',
  'StartError',
  'CreateContainerConfigError',
  'PostStartHookError',
  'Error',
];

/** Explains a Pod with a problem: an image is missing, a container fails, or the sandbox or the volumes cannot be prepared. */
export function explainWaiting(subject: Living): Explanation | undefined {
  const { name } = subject;
  const waiting = shownContainers(subject).filter(({ kind }) => kind !== 'defer');
  for (const shown of waiting) {
    const { reason, message } = shown.status.state?.waiting ?? {};
    if (lacksImage(shown.status)) return missingImage(subject, shown, reason ?? '', message);
    if (reason === 'CrashLoopBackOff') return restarting(subject, shown);
    if (START_REASONS.includes(reason ?? ''))
      return {
        sentence: `${name} waits: ${called(shown)} cannot be started, ${oneLine(message) || reason}.`,
        evidence: [
          `status.state.waiting.reason is ${reason}`,
          ...eventLine(eventOf(subject, ['Failed'], shown.name), subject),
        ],
        advice: startAdvice(reason, message ?? '', subject.namespace),
      };
  }
  const begun = waiting.some(({ status }) => (status.containerID ?? '') !== '');
  return begun ? undefined : (sandbox(subject) ?? volumes(subject));
}

function startAdvice(reason: string | undefined, message: string, namespace: string): string {
  if (reason === 'PostStartHookError')
    return 'fix its postStart hook, or what the hook needs; to change the Pod, recreate it';
  if (reason !== 'CreateContainerConfigError')
    return 'fix its command, security context or devices, and recreate the Pod';
  if (/^(configmap|secret) ".*" not found|^couldn't find key /.test(message))
    return `create the missing ConfigMap, Secret or key in namespace ${namespace}: the node retries automatically`;
  if (/target container/.test(message))
    return 'wait for its target container: it starts once that runs; an ephemeral container without a target starts at once';
  if (/runAsNonRoot|non-root policy/.test(message))
    return 'give it a runAsUser above 0, or an image with a numeric non-root user, and recreate the Pod';
  return 'fix the named problem in the Pod or on the node: the node retries automatically; to change the Pod, recreate it';
}

function missingImage(subject: Living, shown: Shown, reason: string, message: string | undefined): Explanation {
  return {
    sentence: `${subject.name} waits for the image ${imageOf(subject.pod, shown)} of its ${called(shown)}: it ${noImage(subject, shown.name, reason)}.`,
    evidence: imageEvidence(subject, shown, reason, message),
    advice: imageAdvice(subject, [shown]),
  };
}

/** Returns a phrase such as `cannot be pulled, the next attempt is in 15.0s`. */
function noImage(subject: Living, container: string, reason: string): string {
  if (reason === 'ErrImageNeverPull') return 'is not on the node and may not be pulled';
  const next = lastStep(subject, ['PullFailed'], container)?.deadline;
  return `cannot be pulled${next === undefined ? '' : `, the next attempt is ${inTime(next, subject.now)}`}`;
}

function imageEvidence(subject: Living, shown: Shown, reason: string, message: string | undefined): string[] {
  const failed = lastStep(subject, ['PullFailed'], shown.name);
  const tries = subject.transitions.filter(({ type, container }) => type === 'PullFailed' && container === shown.name);
  const count = `${tries.length} ${tries.length === 1 ? 'attempt' : 'attempts'} failed`;
  return [
    `${reason}: ${oneLine(message)}`,
    ...(failed === undefined ? [] : [`${count}, the last one ${ago(failed.at, subject.now)}`]),
  ];
}

function imageAdvice({ pod }: Living, shown: readonly Shown[]): string {
  const isPulledAlways = containersOf(pod).some(
    ({ name, imagePullPolicy }) => imagePullPolicy === 'Always' && shown.some((each) => each.name === name),
  );
  return isPulledAlways
    ? 'check the name, and whether the registry answers: its imagePullPolicy is Always, so loading the image is not enough; with IfNotPresent it would be'
    : 'check the name; lifepod image load FILE loads an image from an archive, without a registry';
}

/** Explains a running Pod whose defer containers will need images that cannot be obtained. */
export function explainEntryImages(subject: Living): Explanation | undefined {
  const entries = shownContainers(subject).filter(({ kind, status }) => kind === 'defer' && lacksImage(status));
  const [first] = entries;
  if (first === undefined) return undefined;
  const { reason = '' } = first.status.state?.waiting ?? {};
  const others = entries.slice(1).map(({ name }) => name);
  return {
    sentence: `${subject.name} runs, but the image ${imageOf(subject.pod, first)} of its ${called(first)} ${noImage(subject, first.name, reason)}${others.length === 0 ? '' : `; images are also missing for ${listed(others)}`}.`,
    evidence: [
      ...entries.flatMap((shown) => {
        const { waiting } = shown.status.state ?? {};
        return imageEvidence(subject, shown, waiting?.reason ?? '', waiting?.message);
      }),
      'its other containers are not affected: a defer container needs its image only when the Pod ends',
    ],
    advice: imageAdvice(subject, entries),
  };
}

function restarting(subject: Living, shown: Shown): Explanation {
  const { name, now, namespace } = subject;
  const { status } = shown;
  const last = status.lastState?.terminated ?? status.state?.terminated;
  const backOff = lastStep(subject, ['BackOff'], shown.name);
  const next = backOff?.deadline === undefined ? '' : `; it restarts ${inTime(backOff.deadline, now)}`;
  const ended = parseTime(last?.finishedAt);
  const oom = last?.reason === 'OOMKilled';
  return {
    sentence: `${name} keeps restarting: ${called(shown)} ${oom ? 'was killed for its memory limit' : `exits with code ${last?.exitCode ?? 'unknown'}`}${next}.`,
    evidence: [
      `${status.restartCount + 1} ${status.restartCount === 0 ? 'run' : 'runs'}, the last one ended ${ended === undefined ? '' : `${ago(ended, now)} `}with code ${last?.exitCode} (${last?.reason})`,
      ...stopReason(subject, shown.name),
      ...lastWords(subject, shown.name, last?.message),
    ],
    advice: oom
      ? 'raise its memory limit, or reduce its memory use'
      : `see its output: lifepod logs ${name} -n ${namespace} -c ${shown.name} --previous`,
  };
}

function sandbox(subject: Living): Explanation | undefined {
  const failed = lastStep(subject, ['SandboxFailed', 'SandboxReady']);
  if (failed?.type !== 'SandboxFailed') return undefined;
  return {
    sentence: `${subject.name} waits: its sandbox cannot be created, ${oneLine(failed.message)}.`,
    evidence: eventLine(eventOf(subject, ['FailedCreatePodSandBox']), subject),
    advice: 'the node retries automatically; lifepod status shows whether containerd and the network are healthy',
  };
}

function volumes(subject: Living): Explanation | undefined {
  const failed = lastStep(subject, ['MountFailed', 'VolumesMounted']);
  const event = eventOf(subject, ['FailedMount']);
  const isWaiting = failed === undefined ? event !== undefined : failed.type === 'MountFailed';
  if (!isWaiting) return undefined;
  return {
    sentence: `${subject.name} waits for its volumes: ${oneLine(failed?.message ?? event?.message)}.`,
    evidence: eventLine(event, subject),
    advice: `create the missing object in namespace ${subject.namespace}, or fix the volume: the node retries automatically`,
  };
}

/** Explains a Pod that is starting without problems. */
export function explainStarting(subject: Living): Explanation | undefined {
  const { name, now, namespace } = subject;
  const pulling = lastStep(subject, ['Pulling', 'Pulled', 'PullFailed']);
  const shown = shownContainers(subject);
  const waits = (container: string | undefined): boolean =>
    shown.find((each) => each.name === container)?.status.state?.waiting !== undefined;
  if (pulling?.type === 'Pulling' && pulling.containerKind !== 'defer' && waits(pulling.container))
    return {
      sentence: `${name} is starting: it has been pulling the image ${pulling.message} of container ${pulling.container} for ${forTime(pulling.at, now)}.`,
      evidence: [`step Pulling, ${ago(pulling.at, now)}`],
      advice: 'wait: the time depends on the size of the image and the speed of the registry',
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
  const runs = running !== undefined;
  return {
    sentence: `${name} is initializing: ${called(init)} (${place} of ${count}) ${runs ? (begun === undefined ? 'is running' : `has been running for ${forTime(begun, now)}`) : 'is about to start'}, and the containers after it wait for it.`,
    evidence: [
      ...(init.status.restartCount > 0 ? [`it was restarted ${init.status.restartCount}×`] : []),
      `condition Initialized is ${conditionOf(subject, 'Initialized')?.status ?? 'unknown'}`,
    ],
    advice: `see its output: lifepod logs ${name} -n ${namespace} -c ${init.name}`,
  };
}
