/** Explains the state of a workload by the Pod that needs attention most, or by the reason for which it has no Pods. Pure. */
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import type { CoreV1Event, Job, Pod } from '../../api/generated/types.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { statusWord } from '../pod-containers.ts';
import { type Action, ago, type Explanation, lastTime, oneLine } from '../why/subject.ts';
import { failureOf, failureRemedies, lastJobLine } from './failed-jobs.ts';
import { idlenessOf, pausedRollout } from './idle-workloads.ts';
import {
  currentRefusal,
  hasJobFailed,
  isJobFinished,
  refusalNow,
  refusalRemedies,
  refusalText,
} from './refused-pods.ts';

interface WorkloadObject extends KubeObject {
  spec?: { replicas?: number; schedule?: string; backoffLimit?: number };
  status?: {
    desiredNumberScheduled?: number;
    /** The number of Pods of a Job that have not ended. */
    active?: number;
    /** The number of Pods of a Job that have failed. */
    failed?: number;
    conditions?: { type: string; status: string }[];
  };
}

const MOST_PODS = 10;
const WITHOUT_PODS = 'it no longer has Pods';

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;

const readyPods = (pods: readonly Pod[]): Pod[] =>
  pods.filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);

const newestFirst = (pods: readonly Pod[]): Pod[] =>
  [...pods].sort(
    (a, b) =>
      (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') ||
      a.metadata.name.localeCompare(b.metadata.name),
  );

/** A Pod with a lower rank needs more attention. */
function rank(pod: Pod): number {
  const { phase } = pod.status ?? {};
  if (phase === 'Succeeded') return 3;
  if (pod.metadata.deletionTimestamp !== undefined) return 2;
  return phase === 'Failed' ? 1 : isReady(pod) ? 2 : 0;
}

/**
 * Returns the Pod that needs attention most, or the newest of several such Pods; undefined only if `pods` is empty. Failed Pods that others
 * have replaced, and those of complete Jobs, are chosen only if there are no others. `owners`: the workload and the objects through which
 * it creates Pods.
 */
export function worstPod(
  object: KubeObject,
  pods: readonly Pod[],
  owners: readonly KubeObject[] = [object],
): Pod | undefined {
  const complete = owners.filter(isComplete).map(uidOf);
  const unneeded = new Set([...replacedPods(object, pods, owners), ...failedPods(pods, complete)]);
  const left = pods.filter((pod) => !unneeded.has(pod));
  return newestFirst(left.length === 0 ? pods : left).sort((a, b) => rank(a) - rank(b))[0];
}

const isComplete = (object: KubeObject): boolean =>
  (object as WorkloadObject).status?.conditions?.some(
    ({ type, status }) => type === 'Complete' && status === 'True',
  ) === true;

/**
 * Returns the failed Pods that are not being deleted, newest first. `owners`: the UIDs of the controllers of the Pods to return; undefined:
 * all Pods.
 */
const failedPods = (pods: readonly Pod[], owners?: readonly string[]): Pod[] =>
  newestFirst(
    pods.filter(
      ({ metadata, status }) =>
        status?.phase === 'Failed' &&
        metadata.deletionTimestamp === undefined &&
        (owners === undefined ||
          metadata.ownerReferences?.some(({ uid, controller }) => controller === true && owners.includes(uid))),
    ),
  );

const isJob = ({ kind }: KubeObject): boolean => kind === 'Job';

/** Returns whether the Pod was ended from outside, for example by a shutdown of its node or an eviction. */
const isDisrupted = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'DisruptionTarget' && value === 'True') === true;

/**
 * Returns the failed Pods that other Pods have replaced; none if the workload has fewer ready Pods than it wants. The Pods of a Job or
 * CronJob that failed by themselves do not count as replaced, because the other Pods may fail, too.
 */
function replacedPods(object: KubeObject, pods: readonly Pod[], owners: readonly KubeObject[]): Pod[] {
  const { spec, status } = object as WorkloadObject;
  const jobs = owners.filter(isJob);
  const ofJobs = jobs.reduce((sum, job) => sum + ((job as WorkloadObject).status?.active ?? 0), 0);
  const wanted = spec?.replicas ?? status?.desiredNumberScheduled ?? ofJobs;
  if (wanted === 0 || readyPods(pods).length < wanted) return [];
  return failedPods(pods).filter((pod) => jobs.length === 0 || isDisrupted(pod));
}

interface Given {
  title: string;
  namespace: string;
  object: KubeObject;
  pods: readonly Pod[];
  /** The workload and the objects through which it creates Pods; absent: the workload. */
  owners?: readonly KubeObject[];
  /** The Events of the workload and of the objects through which it creates Pods. */
  events: readonly CoreV1Event[];
  hints: Hints;
  now: Millis;
}

/** Explains a workload by its worst Pod. `pod` is the result of worstPod(), and `found` its explanation. */
export function explainByPod(given: Given, pod: Pod, found: Explanation): Explanation {
  const { title, namespace, object, pods, owners = [object], hints } = given;
  if (isComplete(object)) return explainComplete({ title, namespace, pods, hints }, found);
  const others = pods.filter((each) => each !== pod);
  const refusal = refusalNow(object, owners, given.events);
  if (refusal !== undefined) return explainRefused(given, refusal, found, others);
  const failure = failureOf(object);
  const replaced = replacedPods(object, pods, owners);
  if (failure === '' && replaced.length > 0 && readyPods([pod]).length > 0)
    return explainReplaced({ title, namespace, object, pods, hints }, replaced, found);
  const [other] = newestFirst(others).sort((a, b) => rank(a) - rank(b));
  const paused = pausedRollout(object, hints);
  const state = failure !== '' ? ` has failed (${failure})` : paused === undefined ? '' : ` ${paused.cause}`;
  return {
    sentence: `${title}${state}: ${found.sentence}`,
    evidence: [...found.evidence, ...lastJobLine(object, owners), ...stateLines(others)],
    actions: [
      ...found.actions,
      ...failureRemedies(given),
      ...(paused === undefined ? [] : [paused.action]),
      ...(other === undefined
        ? []
        : [
            {
              description: 'see another of its Pods',
              command: hints.lifepod(`why ${other.metadata.name} -n ${namespace}`),
            },
          ]),
    ],
  };
}

/** Returns a line for each Pod, up to MOST_PODS of them. */
const stateLines = (pods: readonly Pod[], what = 'Pod'): string[] => [
  ...pods.slice(0, MOST_PODS).map((each) => `Pod ${each.metadata.name}: ${stateOf(each)}`),
  ...(pods.length > MOST_PODS
    ? [`${pods.length - MOST_PODS} more ${what}${pods.length === MOST_PODS + 1 ? '' : 's'}`]
    : []),
];

/** Explains a workload that cannot create more Pods. `found` explains the Pod of worstPod(); `others` are the other Pods. */
function explainRefused(
  { title, namespace, hints }: Given,
  refusal: string,
  found: Explanation,
  others: readonly Pod[],
): Explanation {
  return {
    sentence: `${title} cannot create more Pods: ${refusal}.`,
    evidence: [found.sentence.replace(/\.$/, ''), ...found.evidence, ...stateLines(others)],
    actions: [...refusalRemedies(refusal, namespace, hints), ...found.actions, describe(title, namespace, hints)],
  };
}

const describe = (title: string, namespace: string, hints: Hints): Action => ({
  description: 'see its conditions and Events',
  command: hints.kubectl(`describe ${title.replace('/', ' ')} -n ${namespace}`),
});

type Titled = Pick<Given, 'title' | 'namespace' | 'pods' | 'hints'>;

/** Explains a complete Job. A Job counts as complete although some of its Pods have failed. `found` explains the Pod of worstPod(). */
function explainComplete({ title, namespace, pods, hints }: Titled, found: Explanation): Explanation {
  const failed = failedPods(pods);
  const [first] = failed;
  const although = first === undefined ? '' : `, although ${failed.length} of its Pods failed`;
  return {
    sentence: `${title} is complete${although}: nothing is left to do.`,
    evidence: [
      ...(pods.length > failed.length ? [found.sentence.replace(/\.$/, '')] : []),
      ...stateLines(failed, 'failed Pod'),
    ],
    actions:
      first === undefined
        ? []
        : [
            {
              description: failed.length === 1 ? 'see why it failed' : 'see why one failed',
              command: hints.lifepod(`why ${first.metadata.name} -n ${namespace}`),
            },
          ],
  };
}

/** Explains a workload whose ready Pods have replaced the failed ones. `found` explains a ready Pod. */
function explainReplaced(
  { title, namespace, object, pods, hints }: Titled & Pick<Given, 'object'>,
  replaced: readonly Pod[],
  found: Explanation,
): Explanation {
  const ready = readyPods(pods).length;
  const [one, first] = [replaced.length === 1, replaced.slice(0, MOST_PODS)];
  const names = first.map(({ metadata }) => metadata.name).join(' ');
  const continues = isJob(object) || object.kind === 'CronJob';
  const { spec, status } = object as WorkloadObject;
  return {
    sentence: `${title} ${continues ? 'continues: it ' : ''}has its ${ready} ready Pod${ready === 1 ? '' : 's'}; ${replaced.length} failed Pod${one ? '' : 's'} of it still exist${one ? 's' : ''}, which ${one ? 'another Pod has' : 'other Pods have'} replaced.`,
    evidence: [
      found.sentence.replace(/\.$/, ''),
      ...stateLines(replaced, 'failed Pod'),
      ...(isJob(object) && status?.failed
        ? [`its status.failed is ${status.failed}, its spec.backoffLimit ${spec?.backoffLimit}`]
        : []),
    ],
    actions: [
      {
        description: `delete the failed Pod${one ? '' : 's'}, with the logs`,
        command: hints.kubectl(`delete pod ${names} -n ${namespace}`),
      },
      {
        description: 'see why one has failed',
        command: hints.lifepod(`why ${first[0]?.metadata.name} -n ${namespace}`),
      },
    ],
  };
}

function stateOf(pod: Pod): string {
  const status = statusWord(pod);
  const { phase, reason, message } = pod.status ?? {};
  if (phase === 'Failed') return [reason || status, oneLine(message).replace(/\.$/, '')].filter(Boolean).join(', ');
  if (pod.metadata.deletionTimestamp === undefined || isFinalPhase(pod.status?.phase))
    return isFinalPhase(pod.status?.phase) || !isReady(pod) ? status : 'ready';
  const entry = pod.status?.deferContainerStatuses?.find(({ state }) => state?.running !== undefined);
  return `being stopped${entry === undefined ? '' : `, its defer container ${entry.name} runs`} (${status})`;
}

export function explainPodless(given: Given): Explanation {
  const { title, namespace, object, owners = [object], hints, now } = given;
  if (isComplete(object))
    return { sentence: `${title} is complete: nothing is left to do.`, evidence: [WITHOUT_PODS], actions: [] };
  const { spec } = object as WorkloadObject;
  // The Events of a Job that has ended do not say why a CronJob has no Pods now.
  const ended = owners.filter((each) => isJob(each) && isJobFinished(each as Job)).map(uidOf);
  const events = given.events.filter(({ involvedObject }) => !ended.includes(involvedObject?.uid ?? ''));
  if (isJob(object) && hasJobFailed(object as Job))
    return {
      sentence: `${title} has failed: ${failureOf(object)}.`,
      evidence: [WITHOUT_PODS],
      actions: [...failureRemedies(given), describe(title, namespace, hints)],
    };
  const warnings = events.filter(({ type }) => type === 'Warning').sort((a, b) => lastTime(b) - lastTime(a));
  const event = currentRefusal(owners, events) ?? warnings[0];
  const failure = failureOf(object);
  const message = event === undefined ? '' : refusalText(event);
  const idleness = message === '' && failure === '' ? idlenessOf(object.kind, object, hints) : undefined;
  const cause =
    message !== ''
      ? message
      : failure !== ''
        ? failure
        : idleness !== undefined
          ? idleness.cause
          : spec?.replicas === 0
            ? 'its spec.replicas is 0'
            : spec?.schedule !== undefined
              ? `none of its Jobs has Pods now, its schedule is ${spec.schedule}`
              : 'they have not been created yet, or were deleted';
  return {
    sentence: `${title} has no Pods: ${cause.replace(/\.$/, '')}.`,
    evidence: [
      ...(event === undefined
        ? []
        : [`Event ${event.reason}, ${ago(lastTime(event), now)}: ${oneLine(event.message)}`]),
      ...lastJobLine(object, owners),
    ],
    actions: [
      ...refusalRemedies(cause, namespace, hints),
      ...(idleness === undefined ? [] : [idleness.action]),
      ...failureRemedies(given),
      describe(title, namespace, hints),
    ],
  };
}
