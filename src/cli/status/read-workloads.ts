/**
 * Finds the troubles of workloads that no Pod shows: workloads that cannot create their Pods, for example because a ServiceAccount does not
 * exist or a quota is used up, and failed Jobs whose Pods were deleted.
 *
 * Reads the kinds that report in the condition ReplicaFailure that they cannot create Pods, and takes the cause from the Events, because
 * the message of the condition may be outdated; for the other kinds, see refused-workloads.ts. A Deployment also reports the failures of
 * its ReplicaSets.
 */
import type { Job } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { parseTime } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { controllerOf, oneLine } from '../why/subject.ts';
import { eventsAbout } from '../workloads/events-about.ts';
import { lastFinished } from '../workloads/failed-jobs.ts';
import { cannotCreate, hasJobFailed, refusalNow } from '../workloads/refused-pods.ts';
import { WORKLOAD_TYPES } from '../workloads/workloads.ts';
import { readRefused } from './refused-workloads.ts';
import type { Trouble } from './report.ts';

interface WorkloadObject extends KubeObject {
  status?: {
    conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
  };
}

const KINDS = ['Deployment', 'ReplicaSet', 'ReplicationController', 'Job'] as const;
const TYPES = KINDS.flatMap((kind) =>
  WORKLOAD_TYPES.filter((type) => type.kind === kind).map(({ names, resource }) => ({
    kind,
    word: names[0] ?? '',
    resource,
  })),
);

/** An object may name an owner in another namespace, which does not own it. */
const keyOf = (object: KubeObject, uid: string | undefined = uidOf(object)): string =>
  `${object.metadata.namespace}/${uid}`;

export interface WorkloadReading {
  troubles: Trouble[];
  unread: string[];
}

/**
 * Resolves with the troubles of workloads. `namespace`: undefined for all namespaces. `unwell`: Pods that the report already contains; a
 * failed Job that has one of these Pods is omitted.
 */
export async function readWorkloads(
  client: Client,
  namespace: string | undefined,
  hints: Hints,
  unwell: readonly KubeObject[] = [],
): Promise<WorkloadReading> {
  const unread: string[] = [];
  const { refusals, ...refused } = await readRefused(client, namespace, hints);
  const lists = await Promise.all(
    TYPES.map(async (type) => {
      const { items } = await client
        .resource<WorkloadObject>(type.resource)
        .list(namespace === undefined ? {} : { namespace })
        .catch((error: unknown) => {
          if (isApiError(error, 'Forbidden')) unread.push(`${type.kind}s: ${error.message}`);
          else if (!isApiError(error, 'NotFound')) throw error;
          return { items: [] };
        });
      const wanted = type.kind === 'Job' ? failedJobs(items as Job[], unwell) : items;
      return { ...type, items: wanted as WorkloadObject[] };
    }),
  );
  const owned = Map.groupBy(
    lists.flatMap(({ items }) => items),
    (object) => keyOf(object, controllerOf(object)?.uid),
  );
  const refusalsOf = eventsAbout(refusals);
  const found = lists.flatMap(({ kind, word, items }) =>
    items.flatMap((object) => {
      const reason = (): string | undefined => {
        const owners = [object, ...(owned.get(keyOf(object)) ?? [])];
        return refusalNow(
          object,
          owners,
          owners.flatMap((owner) => refusalsOf(owner)),
        );
      };
      return troubleOf(object, kind, word, reason, hints);
    }),
  );
  return { troubles: [...found, ...refused.troubles], unread: [...unread, ...refused.unread] };
}

/** Returns the failed Jobs without an unwell Pod. Of the Jobs of a CronJob, only the last one to finish counts. */
function failedJobs(jobs: readonly Job[], unwell: readonly KubeObject[]): Job[] {
  const shown = new Set(unwell.map((pod) => keyOf(pod, controllerOf(pod)?.uid)));
  const last = [...Map.groupBy(jobs, (job) => keyOf(job, controllerOf(job)?.uid ?? uidOf(job))).values()].map(
    lastFinished,
  );
  return last.filter((job) => job !== undefined && hasJobFailed(job) && !shown.has(keyOf(job))) as Job[];
}

/** `refusal` returns why the object cannot create Pods. */
function troubleOf(
  object: WorkloadObject,
  kind: Trouble['kind'],
  word: string,
  refusal: () => string | undefined,
  hints: Hints,
): Trouble[] {
  const { metadata, status } = object;
  const wanted = kind === 'Job' ? 'Failed' : 'ReplicaFailure';
  const failure = status?.conditions?.find((each) => each.type === wanted && each.status === 'True');
  if (failure === undefined) return [];
  // The ReplicaSet of a Deployment is omitted, because the Deployment also reports the failure.
  if (kind !== 'Job' && controllerOf(object) !== undefined) return [];
  const { name, namespace = 'default', uid } = metadata;
  const isRefused = kind !== 'Job' && failure.reason !== 'FailedDelete';
  const message = oneLine((isRefused && refusal()) || failure.message);
  const what = isRefused ? cannotCreate(object) : kind === 'Job' ? 'has failed' : 'cannot delete Pods';
  return [
    {
      kind,
      namespace,
      name,
      uid,
      reason: failure.reason || failure.type,
      since: parseTime(failure.lastTransitionTime),
      message: `${name} ${what}${message && `: ${message}`}`,
      command: hints.lifepod(`why ${word}/${name} -n ${namespace}`),
    },
  ];
}
