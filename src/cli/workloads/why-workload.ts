import type { CoreV1Event } from '../../api/generated/types.ts';
import { EVENTS } from '../../api/resources.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { lifeOf, type PodLife } from '../records.ts';
import type { Target } from '../target.ts';
import { controllerOf, type Explanation, type WorkloadRef } from '../why/subject.ts';
import { explainByPod, explainPodless, worstPod } from './explain-workload.ts';
import { listPhrase } from './list-phrase.ts';
import { missingNamespace } from './missing-namespace.ts';
import { findWorkload, type WorkloadName } from './workloads.ts';

export interface WorkloadExplanation {
  workload: { kind: string; name: string; namespace: string };
  /** Undefined if the workload has no Pods. */
  life: PodLife | undefined;
  explanation: Explanation;
}

/**
 * Explains a workload by the Pod that needs attention most, or by its Events and conditions if it has no Pods. Rejects with a UserError if
 * the workload does not exist.
 */
export async function explainWorkload(
  target: Target,
  wanted: WorkloadName,
  explainLife: (life: PodLife, workload: WorkloadRef) => Promise<Explanation>,
): Promise<WorkloadExplanation> {
  const { client, namespace, hints } = target;
  const { type, name } = wanted;
  const found = await findWorkload(client, namespace, wanted);
  if (found === undefined)
    throw (
      (await missingNamespace(client, namespace, hints)) ??
      new UserError(
        `no ${type.kind} ${name} in namespace ${namespace}: ${await listPhrase(target, type.resource, type.kind)}`,
      )
    );
  const workload = { kind: type.kind, name, namespace };
  const { object, owners, pods } = found;
  const events = await Promise.all(
    owners.map(async (owner) => {
      const fieldSelector = `involvedObject.uid=${uidOf(owner)}`;
      return client
        .resource<CoreV1Event>(EVENTS)
        .list({ namespace, fieldSelector })
        .then(({ items }) => items)
        .catch((error: unknown) => {
          // A workload is also explained to a user who may not read Events.
          if (isApiError(error, 'Forbidden')) return [];
          throw error;
        });
    }),
  );
  const title = `${type.names[0]}/${name}`;
  const given = { title, namespace, object, pods, owners, events: events.flat(), hints, now: Date.now() };
  const pod = worstPod(object, pods, owners);
  if (pod === undefined) return { workload, life: undefined, explanation: explainPodless(given) };
  const life = await lifeOf(client, pod);
  // The Job of a CronJob has no manifest of its own.
  const owner = controllerOf(object);
  const source =
    owner?.kind === 'CronJob' ? { kind: owner.kind, title: `cronjob/${owner.name}` } : { kind: type.kind, title };
  return { workload, life, explanation: explainByPod(given, pod, await explainLife(life, source)) };
}
