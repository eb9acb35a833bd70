/** Says why a workload has failed, and what to change before it can succeed. A failed Job often has no Pods that show the failure. Pure. */
import type { CoreV1Event, Job } from '../../api/generated/types.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import type { Hints } from '../hints.ts';
import { type Action, controllerOf, lastTime, oneLine } from '../why/subject.ts';
import { hasJobFailed, isJobFinished } from './refused-pods.ts';

interface WithConditions extends KubeObject {
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}

/** Returns the reason and the message with which a workload failed; empty if it has not failed. */
export function failureOf(object: KubeObject): string {
  const failed = (object as WithConditions).status?.conditions?.find(
    ({ type, status: value }) =>
      (value === 'True' && /^(Failed|ReplicaFailure)$/.test(type)) || (type === 'Progressing' && value === 'False'),
  );
  return failed === undefined
    ? ''
    : `${failed.reason ?? failed.type}${failed.message ? `, ${oneLine(failed.message).replace(/\.$/, '')}` : ''}`;
}

const finishedAt = ({ metadata, status }: Job): string =>
  status?.conditions?.find(({ type, status: value }) => value === 'True' && /^(Complete|Failed)$/.test(type))
    ?.lastTransitionTime ??
  metadata.creationTimestamp ??
  '';

/** Returns the Job that finished last; undefined if none has finished. */
export const lastFinished = (jobs: readonly Job[]): Job | undefined =>
  jobs.filter(isJobFinished).sort((a, b) => finishedAt(b).localeCompare(finishedAt(a)))[0];

/** Returns the Job if it has failed, or the last Job of the CronJob if that one has. */
function failedJobOf(object: KubeObject, owners: readonly KubeObject[]): Job | undefined {
  const last = lastFinished(owners.filter(({ kind }) => kind === 'Job') as Job[]);
  const isWanted = object.kind === 'Job' || object.kind === 'CronJob';
  return isWanted && last !== undefined && hasJobFailed(last) ? last : undefined;
}

/** Returns a line about the last Job of a CronJob if it has failed. */
export function lastJobLine(object: KubeObject, owners: readonly KubeObject[]): string[] {
  const job = object.kind === 'CronJob' ? failedJobOf(object, owners) : undefined;
  return job === undefined ? [] : [`its last Job ${job.metadata.name} has failed: ${failureOf(job)}`];
}

interface Failed {
  namespace: string;
  object: KubeObject;
  pods: readonly KubeObject[];
  owners?: readonly KubeObject[];
  events: readonly CoreV1Event[];
  hints: Hints;
}

/** Returns how to see the end of the last Pod if the Pods of the failed Job were deleted, and what to change if no Pod shows the cause. */
export function failureRemedies({ namespace, object, pods, owners = [object], events, hints }: Failed): Action[] {
  const job = failedJobOf(object, owners);
  if (job === undefined) return [];
  const hasPods = job === object ? pods.length > 0 : pods.some((pod) => controllerOf(pod)?.uid === uidOf(job));
  const isLate = failureOf(job).startsWith('DeadlineExceeded');
  return [
    ...(hasPods ? [] : seeLastPod(job, namespace, events, hints)),
    ...(hasPods && !isLate ? [] : [changeOf(job, namespace, isLate, hints)]),
  ];
}

function seeLastPod(job: Job, namespace: string, events: readonly CoreV1Event[], hints: Hints): Action[] {
  const [created] = events
    .filter(({ reason, involvedObject }) => reason === 'SuccessfulCreate' && involvedObject?.uid === uidOf(job))
    .sort((a, b) => lastTime(b) - lastTime(a));
  const [, name] = /^Created pod: (\S+)$/.exec(created?.message ?? '') ?? [];
  if (name === undefined) return [];
  return [{ description: 'see how its last Pod ended', command: hints.lifepod(`why ${name} -n ${namespace}`) }];
}

/** Returns what to change before the workload can succeed. A Job that has failed never runs again, even after a change. */
function changeOf(job: Job, namespace: string, isLate: boolean, hints: Hints): Action {
  const { activeDeadlineSeconds: deadline } = job.spec ?? {};
  const limit = `activeDeadlineSeconds, which is ${deadline}`;
  const owner = controllerOf(job);
  if (owner?.kind === 'CronJob')
    return {
      description: isLate
        ? `give its Jobs more time: raise spec.jobTemplate.spec.${limit}`
        : 'remove the cause in its spec.jobTemplate, if its Pods have failed by themselves',
      command: hints.kubectl(`edit cronjob ${owner.name} -n ${namespace}`),
    };
  return {
    description: `delete it, and create it again ${isLate ? `with a higher spec.${limit}` : 'after you have removed the cause'}`,
    command: hints.kubectl(`delete job ${job.metadata.name} -n ${namespace}`),
  };
}
