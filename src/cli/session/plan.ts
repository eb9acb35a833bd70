/**
 * Decides in which order a session creates and deletes its objects, and which objects it can check before it creates anything. Adds the
 * label of the session to objects. Pure.
 */
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';

/** The label of every object that a session has created. Its value is the ID of the session. */
export const SESSION_LABEL = 'lifepod.io/session';

export interface KindInfo extends ResourceRef {
  kind: string;
  namespaced: boolean;
}

export interface PlannedObject {
  object: KubeObject;
  source: string;
  info: KindInfo;
  /** Undefined if the kind has no namespace. */
  namespace: string | undefined;
}

/** The kinds that are created first, in this order. Objects of other kinds follow in the order of the manifests. */
const FIRST: readonly (readonly string[])[] = [
  ['Namespace'],
  ['CustomResourceDefinition'],
  [
    'PriorityClass',
    'RuntimeClass',
    'StorageClass',
    'IngressClass',
    'ClusterRole',
    'Role',
    'ResourceQuota',
    'LimitRange',
  ],
  ['ServiceAccount', 'Secret', 'ConfigMap', 'PersistentVolume'],
  ['ClusterRoleBinding', 'RoleBinding', 'PersistentVolumeClaim', 'NetworkPolicy'],
  // The containers of a Pod get the addresses of the Services that exist when they start.
  ['Service'],
];

const rankOf = ({ info }: PlannedObject): number => {
  const rank = FIRST.findIndex((kinds) => kinds.includes(info.kind));
  return rank === -1 ? FIRST.length : rank;
};

export const inOrder = (objects: readonly PlannedObject[]): PlannedObject[] =>
  [...objects].sort((a, b) => rankOf(a) - rankOf(b));

/** Returns a name such as `pod/web`, like kubectl; for an object without a name, `generateName` and an asterisk. */
export const titleOf = (kind: string, { name, generateName }: Partial<KubeObject['metadata']>): string =>
  `${kind.toLowerCase()}/${name ?? `${generateName}*`}`;

export const nameOf = ({ info, object }: PlannedObject): string => titleOf(info.kind, object.metadata);

const placeOf = ({ namespace }: PlannedObject): string => (namespace === undefined ? '' : ` in namespace ${namespace}`);

export const fullNameOf = (planned: PlannedObject): string => nameOf(planned) + placeOf(planned);

export function duplicates(objects: readonly PlannedObject[]): string[] {
  const seen = new Map<string, PlannedObject>();
  return objects.flatMap((planned) => {
    if (planned.object.metadata.name === undefined) return [];
    const { group, resource } = planned.info;
    const key = [group, resource, planned.namespace, planned.object.metadata.name].join('/');
    const other = seen.get(key);
    seen.set(key, planned);
    if (other === undefined) return [];
    return [`${fullNameOf(planned)} is defined twice: in ${other.source} and in ${planned.source}`];
  });
}

/** The fields of an object that may be a Pod. The server has not validated them yet. */
interface PodFields {
  spec?: {
    serviceAccountName?: string;
    serviceAccount?: string;
    priorityClassName?: string;
    runtimeClassName?: string;
    restartPolicy?: string;
    activeDeadlineSeconds?: number;
  };
}

/**
 * Returns whether the object cannot be checked before other objects of the manifests exist: its Namespace, or, for a Pod, its
 * ServiceAccount, PriorityClass or RuntimeClass, which the admission of Pods looks up.
 */
export function needsOthers(planned: PlannedObject, objects: readonly PlannedObject[]): boolean {
  const has = (kind: string, name: string | undefined, namespace?: string): boolean =>
    name !== undefined &&
    objects.some(
      (each) => each.info.kind === kind && each.object.metadata.name === name && each.namespace === namespace,
    );
  if (has('Namespace', planned.namespace)) return true;
  if (planned.info.kind !== 'Pod' || planned.info.group !== '') return false;
  const spec = (planned.object as PodFields).spec ?? {};
  return (
    has('ServiceAccount', spec.serviceAccountName ?? spec.serviceAccount, planned.namespace) ||
    has('PriorityClass', spec.priorityClassName) ||
    has('RuntimeClass', spec.runtimeClassName)
  );
}

interface ClaimTemplates {
  spec?: { volumeClaimTemplates?: KubeObject[] };
}

const labeled = <T extends { metadata?: Partial<KubeObject['metadata']> }>(object: T, id: string): T => ({
  ...object,
  metadata: { ...object.metadata, labels: { ...object.metadata?.labels, [SESSION_LABEL]: id } },
});

/**
 * Returns the object with the label of the session. The claim templates of a StatefulSet also get the label, so that the session deletes
 * the claims that the StatefulSet has created, and keeps claims that existed before.
 */
export function markedObject({ object, info, namespace }: PlannedObject, id: string): KubeObject {
  const marked = labeled(object, id);
  if (namespace !== undefined) marked.metadata.namespace = namespace;
  const { spec } = object as ClaimTemplates;
  if (info.kind !== 'StatefulSet' || !Array.isArray(spec?.volumeClaimTemplates)) return marked;
  const volumeClaimTemplates = spec.volumeClaimTemplates.map((claim) => labeled(claim, id));
  return { ...marked, spec: { ...spec, volumeClaimTemplates } } as KubeObject;
}

/** Kinds that create Pods, directly or through other objects, and never end by themselves. */
const ENDLESS = ['CronJob', 'DaemonSet', 'Deployment', 'ReplicaSet', 'ReplicationController', 'StatefulSet'];
const ENDING = ['Job', 'Pod'];

export const isEndless = (kind: string): boolean => ENDLESS.includes(kind);
export const endsByItself = (kind: string): boolean => ENDING.includes(kind);

export function runsUntilDeleted({ info, object }: PlannedObject): boolean {
  const spec = (object as PodFields).spec ?? {};
  const restarts = info.kind === 'Pod' && (spec.restartPolicy ?? 'Always') === 'Always';
  return isEndless(info.kind) || (restarts && spec.activeDeadlineSeconds === undefined);
}

export const ownsPods = (kind: string): boolean => ENDLESS.includes(kind) || kind === 'Job';

/**
 * The groups of v1.33 with a dot in their name, and the group of the metrics. Custom groups may end with `.k8s.io`, too, such as
 * gateway.networking.k8s.io. Source: staging/src/k8s.io/api, and the groups of the aggregator and of apiextensions.
 */
const BUILT_IN: ReadonlySet<string> = new Set(
  [
    'admissionregistration',
    'apiextensions',
    'apiregistration',
    'authentication',
    'authorization',
    'certificates',
    'coordination',
    'discovery',
    'events',
    'flowcontrol.apiserver',
    'internal.apiserver',
    'metrics',
    'networking',
    'node',
    'rbac.authorization',
    'resource',
    'scheduling',
    'storage',
    'storagemigration',
  ].map((name) => `${name}.k8s.io`),
);

export const mayBeCustom = (apiVersion: string): boolean =>
  apiVersion.includes('/') && !isBuiltIn(apiVersion.replace(/\/.*/, ''));

const isBuiltIn = (group: string): boolean => !group.includes('.') || BUILT_IN.has(group);

/**
 * Returns the step in which the session deletes objects of the kind. A step begins when the objects of the previous step do not exist any
 * more, so that the Pods of an operator can finalize its objects, and defer containers can use Services and accounts.
 */
export function deletionStep({ group, kind }: { group: string; kind: string }): number {
  if (!isBuiltIn(group)) return 0;
  if (ownsPods(kind) || kind === 'Pod') return WORKLOADS_STEP;
  if (kind === 'Namespace') return 3;
  return kind === 'CustomResourceDefinition' ? 4 : 2;
}

/** The step in which Pods and the objects that create Pods are deleted. */
export const WORKLOADS_STEP = 1;

/** Returns the line about what ends the session. */
export function waitingText(objects: readonly PlannedObject[]): string {
  if (objects.some(runsUntilDeleted)) return 'Ctrl+C ends the session';
  if (objects.some(({ info }) => endsByItself(info.kind))) {
    return 'the session ends when all Pods and Jobs have ended, or after Ctrl+C';
  }
  return 'no object runs a Pod: Ctrl+C ends the session';
}
