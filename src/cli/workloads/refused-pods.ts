/** Finds in Events why a workload cannot create its Pods. The status of a Job, StatefulSet or DaemonSet does not show the problem. Pure. */
import type { CoreV1Event, Job } from '../../api/generated/types.ts';
import type { Hints } from '../hints.ts';
import { type Action, oneLine } from '../why/subject.ts';

/** The kinds that create Pods themselves. Deployments and CronJobs create them through ReplicaSets and Jobs. */
const KINDS: readonly (string | undefined)[] = [
  'DaemonSet',
  'Job',
  'ReplicaSet',
  'ReplicationController',
  'StatefulSet',
];

/** Returns whether the Event reports that a workload could not create a Pod. */
export const isRefusal = ({ reason, involvedObject: { kind } }: CoreV1Event): boolean =>
  reason === 'FailedCreate' && KINDS.includes(kind);

/** Returns the error in an Event of a workload controller, as one line without the words in front of it. */
export const refusalText = ({ message }: Pick<CoreV1Event, 'message'>): string =>
  oneLine(message).replace(/^(Error creating: |create (Pod|Claim) .*? failed error: )/, '');

export interface Refusal {
  text: string;
  /** Repeated attempts have the same cause: their texts differ in the name of the Pod and in amounts. */
  cause: string;
  hint: Action | undefined;
  /** Whether the cause usually passes at once, because the engine itself is about to create what is missing. */
  isPassing: boolean;
}

export function refusalOf(event: CoreV1Event, hints: Hints): Refusal {
  const text = refusalText(event).replace(/\.$/, '');
  return {
    text,
    cause: text.replace(/\bpods "[^"]*"/g, 'pods').replace(/, (requested|used): \S*(?=,)/g, ''),
    hint: missingAccount(text, event.involvedObject.namespace ?? 'default', hints)[0],
    isPassing: /serviceaccount "default" not found|status unknown for quota|already exists/.test(text),
  };
}

/** Returns how to create the ServiceAccount that the message misses. The message is that of upstream's admission plugin ServiceAccount. */
export function missingAccount(message: string, namespace: string, hints: Hints): Action[] {
  const [, name] = /error looking up service account \S+: serviceaccount "([^"]+)" not found/.exec(message) ?? [];
  if (name === undefined) return [];
  const command = hints.kubectl(`create serviceaccount ${name} -n ${namespace}`);
  return [{ description: 'create the ServiceAccount, and the Pods are created automatically', command }];
}

const hasCondition = ({ status }: Job, type: string): boolean =>
  (status?.conditions ?? []).some((each) => each.type === type && each.status === 'True');

export const hasJobFailed = (job: Job): boolean => hasCondition(job, 'Failed');
export const isJobFinished = (job: Job): boolean => hasCondition(job, 'Complete') || hasJobFailed(job);

/** Returns whether the Job creates Pods as soon as it can. */
export const wantsPods = (job: Job): boolean =>
  !isJobFinished(job) && job.spec?.suspend !== true && job.metadata.deletionTimestamp === undefined;
