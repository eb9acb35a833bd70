/**
 * Finds in Events why a workload cannot create its Pods. The status of a Job, StatefulSet or DaemonSet does not show the problem, and the
 * condition ReplicaFailure of the other kinds keeps the message of the first refusal, although later ones may have another cause. Pure.
 */
import type {
  CoreV1Event,
  DaemonSet,
  Job,
  ReplicaSet,
  ReplicaSetCondition,
  StatefulSet,
} from '../../api/generated/types.ts';
import { REVISION } from '../../controllers/deployment/revisions.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { type Action, lastTime, oneLine } from '../why/subject.ts';
import { eventsAbout } from './events-about.ts';

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
  oneLine(message)
    .replace(/^(Error creating: |create (Pod|Claim) .*? failed error: )/, '')
    .replace(EMPTY_SCHEDULE, 'its schedule $1 has no time in the next five years');

/** Upstream's message about a schedule such as `0 0 31 2 *`. Source: src/controllers/cron-job/missed-times.ts. */
const EMPTY_SCHEDULE = /^invalid schedule: (.*) : time difference between two schedules is less than 1 second$/;

export interface Refusal {
  text: string;
  /** Repeated attempts have the same cause: their texts differ in the name of the Pod and in amounts. */
  cause: string;
  hint: Action | undefined;
  /** Whether the cause usually passes soon without the user, for example because the engine is about to create the ServiceAccount. */
  isPassing: boolean;
}

export function refusalOf(event: CoreV1Event, hints: Hints): Refusal {
  const text = refusalText(event).replace(/\.$/, '');
  return {
    text,
    cause: text.replace(/\bpods "[^"]*"/g, 'pods').replace(/, (requested|used): \S*(?=,)/g, ''),
    hint: refusalRemedies(text, event.involvedObject.namespace ?? 'default', hints)[0],
    isPassing: /serviceaccount "default" not found|status unknown for quota|already exists/.test(text),
  };
}

/** Returns what to do about the error. The messages are those of upstream's admission plugins ServiceAccount and ResourceQuota. */
export function refusalRemedies(message: string, namespace: string, hints: Hints): Action[] {
  const [, name] = /error looking up service account \S+: serviceaccount "([^"]+)" not found/.exec(message) ?? [];
  if (name !== undefined) {
    const command = hints.kubectl(`create serviceaccount ${name} -n ${namespace}`);
    return [{ description: 'create the ServiceAccount, and the Pods are created automatically', command }];
  }
  if (/^its schedule .* has no time/.test(message))
    return [{ description: 'correct the spec.schedule of the CronJob: its months may not have its day' }];
  const [, quota] = /exceeded quota: ([^,\s]+),/.exec(message) ?? [];
  if (quota === undefined) return [];
  const description = `raise the quota ${quota}, or lower the number of Pods or what they request`;
  return [{ description, command: hints.kubectl(`edit quota ${quota} -n ${namespace}`) }];
}

const LACKS_PODS: { readonly [kind: string]: (object: KubeObject) => boolean } = {
  Job: (object) => {
    const { spec, status } = object as Job;
    const left = (spec?.completions ?? Number.POSITIVE_INFINITY) - (status?.succeeded ?? 0);
    return wantsPods(object as Job) && (status?.active ?? 0) < Math.min(spec?.parallelism ?? 1, left);
  },
  StatefulSet: (object) => {
    const { spec, status } = object as StatefulSet;
    return (status?.replicas ?? 0) < (spec?.replicas ?? 1);
  },
  DaemonSet: (object) => {
    const { currentNumberScheduled = 0, desiredNumberScheduled = 0 } = (object as DaemonSet).status ?? {};
    return currentNumberScheduled < desiredNumberScheduled;
  },
};

/** The kinds that report only in Events that they cannot create Pods. The others have the condition ReplicaFailure. */
export const SILENT_KINDS: readonly string[] = Object.keys(LACKS_PODS);

/** Returns whether an object of SILENT_KINDS has fewer Pods than it wants now. */
export const lacksPods = (kind: string, object: KubeObject): boolean =>
  object.metadata.deletionTimestamp === undefined && LACKS_PODS[kind]?.(object) === true;

/** Returns the condition with which an object says that it cannot create Pods; undefined if it has none. */
const failedCreateOf = (object: KubeObject): ReplicaSetCondition | undefined =>
  (object as ReplicaSet).status?.conditions?.find(
    ({ type, status, reason }) => type === 'ReplicaFailure' && status === 'True' && reason === 'FailedCreate',
  );

/**
 * Returns the newest of `events` that reports why an owner lacks Pods now; undefined if none does. Of the ReplicaSets of a Deployment, the
 * one with the last revision decides, because the others have older templates.
 */
export function currentRefusal(owners: readonly KubeObject[], events: readonly CoreV1Event[]): CoreV1Event | undefined {
  const eventsOf = eventsAbout(events);
  const found = owners.flatMap((owner) => {
    const own = eventsOf(owner);
    const since = refusedSince(owner, own);
    return own
      .filter((event) => isRefusal(event) && lastTime(event) >= since)
      .map((event) => ({ event, revision: Number(owner.metadata.annotations?.[REVISION] ?? 0) }));
  });
  return found.sort((a, b) => b.revision - a.revision || lastTime(b.event) - lastTime(a.event))[0]?.event;
}

/** Returns the earliest time of a refusal that is still true; infinity if the object lacks no Pods. `own`: the Events of the object. */
function refusedSince(object: KubeObject, own: readonly CoreV1Event[]): Millis {
  const failure = failedCreateOf(object);
  if (failure !== undefined) return parseTime(failure.lastTransitionTime) ?? 0;
  if (!lacksPods(object.kind, object)) return Number.POSITIVE_INFINITY;
  return own
    .filter(({ reason }) => reason === 'SuccessfulCreate')
    .reduce((latest, event) => Math.max(latest, lastTime(event) + 1), 0);
}

/**
 * Returns why a workload cannot create Pods now, as one line without the final period; undefined if it can. `owners`: the workload and the
 * objects through which it creates Pods.
 */
export function refusalNow(
  object: KubeObject,
  owners: readonly KubeObject[],
  events: readonly CoreV1Event[],
): string | undefined {
  const error = currentRefusal(owners, events) ?? failedCreateOf(object);
  return error && refusalText(error).replace(/\.$/, '');
}

/** Returns the words for an object that lacks Pods, which depend on whether it has some. */
export function cannotCreate(object: KubeObject): string {
  const {
    active = 0,
    currentNumberScheduled = active,
    replicas = currentNumberScheduled,
  } = (object as WithCounts).status ?? {};
  return replicas > 0 ? 'cannot create more Pods' : 'cannot create Pods';
}

/** The number of Pods in the status of a Job, of a DaemonSet, and of the other kinds. */
interface WithCounts {
  status?: { active?: number; currentNumberScheduled?: number; replicas?: number };
}

const hasCondition = ({ status }: Job, type: string): boolean =>
  (status?.conditions ?? []).some((each) => each.type === type && each.status === 'True');

export const hasJobFailed = (job: Job): boolean => hasCondition(job, 'Failed');
export const isJobFinished = (job: Job): boolean => hasCondition(job, 'Complete') || hasJobFailed(job);

/** Returns whether the Job creates Pods as soon as it can. */
export const wantsPods = (job: Job): boolean =>
  !isJobFinished(job) && job.spec?.suspend !== true && job.metadata.deletionTimestamp === undefined;
