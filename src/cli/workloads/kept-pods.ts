/** Composes the sentence about Pods that keep the engine of a session running, and finds the workloads that create these Pods. */
import type { Pod } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Hints } from '../hints.ts';
import { controllerOf } from '../why/subject.ts';
import { shortList } from './missing-pod.ts';
import { WORKLOAD_TYPES } from './workloads.ts';

export async function keptPodsLine(client: Client, pods: readonly Pod[], hints: Hints): Promise<string> {
  const names = pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(', ');
  const workloads = await Promise.all(pods.map((pod) => workloadOf(client, pod)));
  const deletes = [...new Set(workloads)].flatMap((words) =>
    words === undefined ? [] : [`'${hints.kubectl(`delete ${words}`)}'`],
  );
  const again =
    deletes.length === 0
      ? ''
      : `; a workload creates its Pods again at the next start until it is deleted: ${shortList(deletes)}`;
  return `the engine keeps running, because no session has created these Pods: ${names}; '${hints.engine('down')}' ends them${hints.reinstall}${again}`;
}

/** Resolves with words such as `deployment/web -n default`; undefined if the Pod belongs to no workload. */
async function workloadOf(client: Client, pod: Pod): Promise<string | undefined> {
  const owner = await ownerOf(client, pod);
  const top = owner && ((await ownerOf(client, owner.object)) ?? owner);
  return top && `${top.type}/${top.object.metadata.name} -n ${pod.metadata.namespace}`;
}

async function ownerOf(client: Client, owned: KubeObject): Promise<{ type: string; object: KubeObject } | undefined> {
  const reference = controllerOf(owned);
  const found = WORKLOAD_TYPES.find(({ kind }) => kind === reference?.kind);
  if (reference === undefined || found === undefined) return undefined;
  const object = await client
    .resource<KubeObject>(found.resource)
    .get(reference.name, owned.metadata.namespace)
    .catch((error: unknown) => {
      if (isApiError(error)) return undefined;
      throw error;
    });
  return object === undefined || uidOf(object) !== reference.uid ? undefined : { type: found.names[0] ?? '', object };
}
