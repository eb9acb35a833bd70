/**
 * Finds the Jobs, StatefulSets and DaemonSets that cannot create their Pods. Their status has no condition for this, so readRefused() reads
 * Events: the last failure must be newer than the last success, and the object must still lack Pods.
 */
import type { CoreV1Event } from '../../api/generated/types.ts';
import { EVENTS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { parseTime } from '../../machinery/time.ts';
import type { Hints } from '../hints.ts';
import { lastTime } from '../why/subject.ts';
import { eventsAbout } from '../workloads/events-about.ts';
import { cannotCreate, isRefusal, lacksPods, refusalText, SILENT_KINDS } from '../workloads/refused-pods.ts';
import { WORKLOAD_TYPES } from '../workloads/workloads.ts';
import type { WorkloadReading } from './read-workloads.ts';
import type { Trouble } from './report.ts';

export interface RefusalReading extends WorkloadReading {
  /** The Events that report why workloads of any kind could not create a Pod; none if the user may not read Events. */
  refusals: readonly CoreV1Event[];
}

/** Resolves with a trouble for each such workload. `namespace`: undefined for all namespaces. */
export async function readRefused(
  client: Client,
  namespace: string | undefined,
  hints: Hints,
): Promise<RefusalReading> {
  const where = namespace === undefined ? {} : { namespace };
  const eventsOf = async (reason: string): Promise<CoreV1Event[]> =>
    (await client.resource<CoreV1Event>(EVENTS).list({ ...where, fieldSelector: `reason=${reason}` })).items;
  const unread: string[] = [];
  try {
    const refusals = (await eventsOf('FailedCreate')).filter(isRefusal);
    const kinds = new Set(refusals.map(({ involvedObject }) => involvedObject.kind));
    const types = WORKLOAD_TYPES.filter(({ kind }) => SILENT_KINDS.includes(kind) && kinds.has(kind));
    if (types.length === 0) return { troubles: [], unread: [], refusals };
    const created = eventsAbout(await eventsOf('SuccessfulCreate'));
    const refused = eventsAbout(refusals);
    const found = await Promise.all(
      types.map(async ({ kind, names, resource }) => {
        const { items } = await client
          .resource<KubeObject>(resource)
          .list(where)
          .catch((error: unknown) => {
            if (isApiError(error, 'Forbidden')) unread.push(`${kind}s: ${error.message}`);
            else if (!isApiError(error, 'NotFound')) throw error;
            return { items: [] };
          });
        return items
          .filter((object) => lacksPods(kind, object))
          .flatMap((object) =>
            troubleOf(object, kind as Trouble['kind'], refused(object), created(object), (name) =>
              hints.lifepod(`why ${names[0]}/${name} -n ${object.metadata.namespace}`),
            ),
          );
      }),
    );
    return { troubles: found.flat(), unread, refusals };
  } catch (error) {
    if (!isApiError(error, 'Forbidden')) throw error;
    return {
      troubles: [],
      refusals: [],
      unread: [`Events: ${error.message}: Jobs, StatefulSets and DaemonSets that cannot create Pods are not reported`],
    };
  }
}

/** `refusals`, `creations`: the Events about the object. */
function troubleOf(
  object: KubeObject,
  kind: Trouble['kind'],
  refusals: readonly CoreV1Event[],
  creations: readonly CoreV1Event[],
  commandFor: (name: string) => string,
): Trouble[] {
  const { name, namespace = 'default', uid } = object.metadata;
  const after = creations.reduce((latest, event) => Math.max(latest, lastTime(event)), 0);
  const current = refusals.filter((event) => lastTime(event) > after).sort((a, b) => lastTime(b) - lastTime(a));
  const [last] = current;
  if (last === undefined) return [];
  const first = current.reduce(
    (earliest, event) => Math.min(earliest, parseTime(event.firstTimestamp) ?? lastTime(event)),
    lastTime(last),
  );
  const since = Math.max(after, first);
  const message = `${name} ${cannotCreate(object)}: ${refusalText(last)}`;
  return [{ kind, namespace, name, uid, reason: 'FailedCreate', since, message, command: commandFor(name) }];
}
