/**
 * Finds the workloads that cannot create their Pods, for example because a ServiceAccount does not exist or a quota is used up. No Pod
 * shows this trouble.
 *
 * Reads the kinds that report such a failure in the condition ReplicaFailure; for the others, see refused-workloads.ts. A Deployment also
 * reports the failures of its ReplicaSets.
 */
import type { Client } from '../../client/client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { parseTime } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { controllerOf, oneLine } from '../why/subject.ts';
import { WORKLOAD_TYPES } from '../workloads/workloads.ts';
import { readRefused } from './refused-workloads.ts';
import type { Trouble } from './report.ts';

interface WorkloadObject extends KubeObject {
  status?: {
    conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
  };
}

const KINDS = ['Deployment', 'ReplicaSet', 'ReplicationController'] as const;
const TYPES = KINDS.flatMap((kind) =>
  WORKLOAD_TYPES.filter((type) => type.kind === kind).map(({ names, resource }) => ({
    kind,
    word: names[0] ?? '',
    resource,
  })),
);

export interface WorkloadReading {
  troubles: Trouble[];
  unread: string[];
}

/** `namespace`: undefined for all namespaces. */
export async function readWorkloads(
  client: Client,
  namespace: string | undefined,
  hints: Hints,
): Promise<WorkloadReading> {
  const unread: string[] = [];
  const found = await Promise.all(
    TYPES.map(async ({ kind, word, resource }) => {
      const { items } = await client
        .resource<WorkloadObject>(resource)
        .list(namespace === undefined ? {} : { namespace })
        .catch((error: unknown) => {
          if (isApiError(error, 'Forbidden')) unread.push(`${kind}s: ${error.message}`);
          else if (!isApiError(error, 'NotFound')) throw error;
          return { items: [] };
        });
      return items.flatMap((object) => troubleOf(object, kind, word, hints));
    }),
  );
  const refused = await readRefused(client, namespace, hints);
  return { troubles: [...found.flat(), ...refused.troubles], unread: [...unread, ...refused.unread] };
}

function troubleOf(object: WorkloadObject, kind: Trouble['kind'], word: string, hints: Hints): Trouble[] {
  const { metadata, status } = object;
  const failure = status?.conditions?.find((each) => each.type === 'ReplicaFailure' && each.status === 'True');
  // The failure of an object with a controller is omitted, because the controller also reports it.
  if (failure === undefined || controllerOf(object) !== undefined) return [];
  const { name, namespace = 'default', uid } = metadata;
  const message = oneLine(failure.message);
  return [
    {
      kind,
      namespace,
      name,
      uid,
      reason: failure.reason || failure.type,
      since: parseTime(failure.lastTransitionTime),
      message: `${name} cannot ${failure.reason === 'FailedDelete' ? 'delete' : 'create'} Pods${message && `: ${message}`}`,
      command: hints.lifepod(`why ${word}/${name} -n ${namespace}`),
    },
  ];
}
