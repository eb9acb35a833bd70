/** Why a Pod that has a node has not started yet, or starts again and again. Pure. */
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

/** Something that it needs cannot be had. */
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
    return 'correct its postStart hook, or what that needs; a changed Pod must be made anew';
  if (reason !== 'CreateContainerConfigError')
    return 'correct its command, security context or devices, and make the Pod anew';
  if (/^(configmap|secret) ".*" not found|^couldn't find key /.test(message))
    return `create the ConfigMap, Secret or key that is named in namespace ${namespace}: the next try comes by itself`;
  if (/target container/.test(message))
    return 'wait for its target: it starts by itself once that runs, and one without a target starts at once';
  if (/runAsNonRoot|non-root policy/.test(message))
    return 'give it a runAsUser above 0, or an image with the number of such a user, and make the Pod anew';
  return 'correct what is named, in the Pod or on the node: the next try comes by itself, a changed Pod must be made anew';
}

function missingImage(subject: Living, shown: Shown, reason: string, message: string | undefined): Explanation {
  return {
    sentence: `${subject.name} waits for the image ${imageOf(subject.pod, shown)} of its ${called(shown)}: it ${noImage(subject, shown.name, reason)}.`,
    evidence: imageEvidence(subject, shown, reason, message),
    advice: imageAdvice(subject, [shown]),
  };
}

/** `cannot be pulled, the next try comes in 15.0s`. */
function noImage(subject: Living, container: string, reason: string): string {
  if (reason === 'ErrImageNeverPull') return 'is not on the node and may not be pulled';
  const next = lastStep(subject, ['PullFailed'], container)?.deadline;
  return `cannot be pulled${next === undefined ? '' : `, the next try comes ${inTime(next, subject.now)}`}`;
}

function imageEvidence(subject: Living, shown: Shown, reason: string, message: string | undefined): string[] {
  const failed = lastStep(subject, ['PullFailed'], shown.name);
  const tries = subject.transitions.filter(({ type, container }) => type === 'PullFailed' && container === shown.name);
  const count = `${tries.length} ${tries.length === 1 ? 'try' : 'tries'} failed`;
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
    ? 'look at the name for a mistake, and whether the registry answers: its imagePullPolicy is Always, so an image that is loaded does not do; with IfNotPresent one would'
    : 'look at the name for a mistake; lifepod image load FILE loads an image from an archive, without a registry';
}

/** The Pod runs, but entries of its list will need images that cannot be had. */
export function explainEntryImages(subject: Living): Explanation | undefined {
  const entries = shownContainers(subject).filter(({ kind, status }) => kind === 'defer' && lacksImage(status));
  const [first] = entries;
  if (first === undefined) return undefined;
  const { reason = '' } = first.status.state?.waiting ?? {};
  const others = entries.slice(1).map(({ name }) => name);
  return {
    sentence: `${subject.name} runs, but the image ${imageOf(subject.pod, first)} of its ${called(first)} ${noImage(subject, first.name, reason)}${others.length === 0 ? '' : `; nor is there an image for ${listed(others)}`}.`,
    evidence: [
      ...entries.flatMap((shown) => {
        const { waiting } = shown.status.state ?? {};
        return imageEvidence(subject, shown, waiting?.reason ?? '', waiting?.message);
      }),
      'its containers are not affected: an entry needs its image when the Pod ends',
    ],
    advice: imageAdvice(subject, entries),
  };
}

function restarting(subject: Living, shown: Shown): Explanation {
  const { name, now, namespace } = subject;
  const { status } = shown;
  const last = status.lastState?.terminated ?? status.state?.terminated;
  const backOff = lastStep(subject, ['BackOff'], shown.name);
  const next = backOff?.deadline === undefined ? '' : `; the next start comes ${inTime(backOff.deadline, now)}`;
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
      ? 'raise its memory limit, or make it need less'
      : `see what it says: lifepod logs ${name} -n ${namespace} -c ${shown.name} --previous`,
  };
}

function sandbox(subject: Living): Explanation | undefined {
  const failed = lastStep(subject, ['SandboxFailed', 'SandboxReady']);
  if (failed?.type !== 'SandboxFailed') return undefined;
  return {
    sentence: `${subject.name} waits: its sandbox cannot be made, ${oneLine(failed.message)}.`,
    evidence: eventLine(eventOf(subject, ['FailedCreatePodSandBox']), subject),
    advice: 'lifepod status shows whether containerd and the network are well; it is tried again by itself',
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
    advice: `create what is missing in namespace ${subject.namespace}, or correct the volume: it is tried again by itself`,
  };
}

/** All goes its way, but is not at its end. */
export function explainStarting(subject: Living): Explanation | undefined {
  const { name, now, namespace } = subject;
  const pulling = lastStep(subject, ['Pulling', 'Pulled', 'PullFailed']);
  const shown = shownContainers(subject);
  const waits = (container: string | undefined): boolean =>
    shown.find((each) => each.name === container)?.status.state?.waiting !== undefined;
  if (pulling?.type === 'Pulling' && pulling.containerKind !== 'defer' && waits(pulling.container))
    return {
      sentence: `${name} is starting: it pulls the image ${pulling.message} of container ${pulling.container}, for ${forTime(pulling.at, now)} now.`,
      evidence: [`step Pulling, ${ago(pulling.at, now)}`],
      advice: 'wait: a pull takes as long as the registry is slow',
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
    sentence: `${name} is initializing: ${called(init)} (${place} of ${count}) ${runs ? `runs${begun === undefined ? '' : `, for ${forTime(begun, now)} now`}` : 'is about to start'}, and the containers after it wait for it.`,
    evidence: [
      ...(init.status.restartCount > 0 ? [`it was restarted ${init.status.restartCount}×`] : []),
      `condition Initialized is ${conditionOf(subject, 'Initialized')?.status ?? 'unknown'}`,
    ],
    advice: `see what it does: lifepod logs ${name} -n ${namespace} -c ${init.name}`,
  };
}
