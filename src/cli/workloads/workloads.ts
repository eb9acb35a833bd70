/** Finds workloads (Deployments, Jobs and other objects that create Pods) and their Pods, for commands that accept a Pod or a workload. */
import type { Pod } from '../../api/generated/types.ts';
import {
  CRON_JOBS,
  DAEMON_SETS,
  DEPLOYMENTS,
  JOBS,
  PODS,
  REPLICA_SETS,
  REPLICATION_CONTROLLERS,
  STATEFUL_SETS,
} from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { type KubeObject, type ResourceRef, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { isPodType, WORKLOAD_NAMES, workloadKind } from './type-names.ts';

export interface WorkloadType {
  kind: string;
  /** The names of the type that kubectl accepts in TYPE/NAME, the usual one first. */
  names: readonly string[];
  resource: ResourceRef;
  /** The type of the objects through which the workload creates its Pods; undefined if the workload creates its Pods itself. */
  through?: ResourceRef;
}

const type = (kind: keyof typeof WORKLOAD_NAMES, resource: ResourceRef, through?: ResourceRef): WorkloadType => ({
  kind,
  names: WORKLOAD_NAMES[kind],
  resource,
  ...(through === undefined ? {} : { through }),
});

export const WORKLOAD_TYPES: readonly WorkloadType[] = [
  type('Deployment', DEPLOYMENTS, REPLICA_SETS),
  type('StatefulSet', STATEFUL_SETS),
  type('DaemonSet', DAEMON_SETS),
  type('ReplicaSet', REPLICA_SETS),
  type('ReplicationController', REPLICATION_CONTROLLERS),
  type('Job', JOBS),
  type('CronJob', CRON_JOBS, JOBS),
];

export interface WorkloadName {
  type: WorkloadType;
  name: string;
}

/** Parses TYPE/NAME. Returns undefined for the name of a Pod, with or without `pod/`. Throws a UserError for any other text. */
export function workloadName(given: string): WorkloadName | undefined {
  const [word = '', name, ...more] = given.split('/');
  if (name === undefined || isPodType(word)) return undefined;
  const type = workloadType(word);
  if (type !== undefined && name !== '' && more.length === 0) return { type, name };
  const types = WORKLOAD_TYPES.map(({ names }) => `${names[0]}/NAME`).join(', ');
  throw new UserError(`${given} is neither a Pod nor a workload: give the name of a Pod, or one of ${types}`);
}

/** Finds a workload type by its name in kubectl, with or without the group, such as deployment.apps. */
export const workloadType = (word: string): WorkloadType | undefined =>
  WORKLOAD_TYPES.find(({ kind }) => kind === workloadKind(word));

export interface Workload {
  object: KubeObject;
  /** The workload itself, and the objects of `through` that it owns. */
  owners: readonly KubeObject[];
  pods: readonly Pod[];
}

/** Resolves with undefined if the workload does not exist. */
export async function findWorkload(
  client: Client,
  namespace: string,
  wanted: WorkloadName,
): Promise<Workload | undefined> {
  const { resource, through } = wanted.type;
  const object = await client
    .resource<KubeObject>(resource)
    .get(wanted.name, namespace)
    .catch((error: unknown) => {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
  if (object === undefined) return undefined;
  const owned = through === undefined ? [] : await listIn<KubeObject>(client, through, namespace);
  const owners = [object, ...owned.filter((each) => isOwnedBy(each, [object]))];
  const pods = (await listIn<Pod>(client, PODS, namespace)).filter((pod) => isOwnedBy(pod, owners));
  return { object, owners, pods };
}

/** Resolves with the types of the workloads that have the name. Omits types that the user may not read. */
export async function workloadsNamed(client: Client, namespace: string, name: string): Promise<WorkloadType[]> {
  const found = await Promise.all(
    WORKLOAD_TYPES.map(async (type) => {
      const object = await client
        .resource<KubeObject>(type.resource)
        .get(name, namespace)
        .catch((error: unknown) => {
          if (isApiError(error)) return undefined;
          throw error;
        });
      return object === undefined ? [] : [type];
    }),
  );
  return found.flat();
}

const listIn = async <T extends KubeObject>(client: Client, resource: ResourceRef, namespace: string): Promise<T[]> =>
  (await client.resource<T>(resource).list({ namespace })).items;

const isOwnedBy = ({ metadata }: KubeObject, owners: readonly KubeObject[]): boolean =>
  metadata.ownerReferences?.some(
    ({ uid, controller }) => controller === true && owners.some((each) => uidOf(each) === uid),
  ) === true;
