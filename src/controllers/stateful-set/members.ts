/**
 * Determines the members of a StatefulSet: Pods with ordinals, each with its own name, host name and claims. The functions are pure.
 * Source: pkg/controller/statefulset/stateful_set_utils.go of v1.33 (behavior).
 */
import type { ControllerRevision, Pod, StatefulSet, Volume } from '../../api/generated/types.ts';
import { STATEFUL_SETS } from '../../api/resources.ts';
import type { Millis } from '../../machinery/time.ts';
import type { OwnerKind } from '../ownership/owner.ts';
import { isPodAvailable, isPodReady } from '../ownership/pod-state.ts';
import { podFromTemplate } from '../ownership/pods-of-owner.ts';
import { type RevisionKind, templateOf } from '../revisions/history.ts';
import { claimNameOf, claimTemplatesOf } from './claims.ts';

export const STATEFUL_SET: OwnerKind = { apiVersion: 'apps/v1', kind: 'StatefulSet', resource: STATEFUL_SETS };
export const STATEFUL_SET_REVISIONS: RevisionKind = {
  owner: STATEFUL_SET,
  hashLabel: 'controller.kubernetes.io/hash',
};

/** The label of a Pod with the name of its ControllerRevision. */
export const REVISION = 'controller-revision-hash';
export const POD_NAME = 'statefulset.kubernetes.io/pod-name';
export const POD_INDEX = 'apps.kubernetes.io/pod-index';

export const podNameOf = ({ metadata }: StatefulSet, ordinal: number): string => `${metadata.name}-${ordinal}`;

export const startOf = ({ spec }: StatefulSet): number => spec?.ordinals?.start ?? 0;
export const wantedReplicas = ({ spec }: StatefulSet): number => spec?.replicas ?? 1;

/** Returns the ordinal in the name of the Pod; undefined if the Pod does not have the name of a member. */
export function ordinalOf(set: StatefulSet, { metadata }: Pod): number | undefined {
  const prefix = `${set.metadata.name}-`;
  if (!metadata.name.startsWith(prefix)) return undefined;
  const text = metadata.name.slice(prefix.length);
  return /^(0|[1-9][0-9]{0,9})$/.test(text) ? Number(text) : undefined;
}

export const isInRange = (set: StatefulSet, ordinal: number): boolean =>
  ordinal >= startOf(set) && ordinal < startOf(set) + wantedReplicas(set);

export const isTerminating = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

export const revisionOf = ({ metadata }: Pod): string | undefined => metadata.labels?.[REVISION];

export const isRunningAndReady = (pod: Pod): boolean => pod.status?.phase === 'Running' && isPodReady(pod);

export const isHealthy = (pod: Pod): boolean => isRunningAndReady(pod) && !isTerminating(pod);

export const isRunningAndAvailable = ({ spec }: StatefulSet, pod: Pod, now: Millis): boolean =>
  isRunningAndReady(pod) && isPodAvailable(pod, spec?.minReadySeconds ?? 0, now);

export interface Revisions {
  /** The revision of the Pods that are not updated yet. */
  current: ControllerRevision;
  /** The revision of the StatefulSet's template. */
  update: ControllerRevision;
}

export interface Members {
  set: StatefulSet;
  revisions: Revisions;
  /** Returns the Pod with the index, which counts from the first ordinal; undefined if the Pod does not exist. */
  at(index: number): Pod | undefined;
  /** The Pods whose ordinals are in range, the lowest first. */
  replicas: readonly Pod[];
  /** The Pods whose ordinals are out of range, the highest first. */
  condemned: readonly Pod[];
  now: Millis;
}

/** `pods`: the Pods that the StatefulSet controls. Omits Pods that do not have the name of a member. */
export function membersOf(set: StatefulSet, revisions: Revisions, pods: readonly Pod[], now: Millis): Members {
  const byOrdinal = new Map<number, Pod>();
  for (const pod of pods) {
    const ordinal = ordinalOf(set, pod);
    if (ordinal !== undefined) byOrdinal.set(ordinal, pod);
  }
  const ordered = [...byOrdinal].sort(([a], [b]) => a - b);
  const [replicas = [], condemned = []] = [true, false].map((wanted) =>
    ordered.filter(([ordinal]) => isInRange(set, ordinal) === wanted).map(([, pod]) => pod),
  );
  const at = (index: number): Pod | undefined => byOrdinal.get(startOf(set) + index);
  return { set, revisions, at, replicas, condemned: condemned.reverse(), now };
}

export const countOf = ({ replicas, condemned }: Members, revision: ControllerRevision): number =>
  [...replicas, ...condemned].filter((pod) => !isTerminating(pod) && revisionOf(pod) === revision.metadata.name).length;

/**
 * Whether a new Pod gets the current revision instead of the update revision: its index is below the partition or, without `rollingUpdate`,
 * below the number of Pods that still have the current revision.
 */
function needsCurrentRevision(members: Members, ordinal: number): boolean {
  const { set, revisions } = members;
  const strategy = set.spec?.updateStrategy;
  if (strategy?.type !== 'RollingUpdate') return false;
  const { partition = 0 } = strategy.rollingUpdate ?? {};
  const kept = strategy.rollingUpdate === undefined ? countOf(members, revisions.current) : partition;
  return ordinal < startOf(set) + kept;
}

export function newMember(members: Members, ordinal: number): Pod {
  const { set, revisions } = members;
  const isCurrent = needsCurrentRevision(members, ordinal);
  const revision = isCurrent ? revisions.current : revisions.update;
  const template = isCurrent ? (templateOf(revision) ?? set.spec?.template) : set.spec?.template;
  const { metadata, spec = { containers: [] }, ...pod } = podFromTemplate(template, set, STATEFUL_SET);
  const { serviceName } = set.spec ?? {};
  const name = podNameOf(set, ordinal);
  return {
    ...pod,
    metadata: {
      ...metadata,
      name,
      labels: { ...metadata.labels, ...identityLabels(name, ordinal), [REVISION]: revision.metadata.name },
    },
    spec: {
      ...spec,
      hostname: name,
      ...(serviceName ? { subdomain: serviceName } : {}),
      ...volumesOf(set, ordinal, spec.volumes ?? []),
    },
  };
}

const identityLabels = (name: string, ordinal: number): Record<string, string> => ({
  [POD_NAME]: name,
  [POD_INDEX]: String(ordinal),
});

/** The volumes for the claims replace volumes of the template with the same names. */
function volumesOf(set: StatefulSet, ordinal: number, volumes: readonly Volume[]): { volumes?: Volume[] } {
  const names = claimTemplatesOf(set).map(({ metadata }) => metadata.name);
  const own = names.map((name) => ({ name, persistentVolumeClaim: { claimName: claimNameOf(set, name, ordinal) } }));
  const all = [...own, ...volumes.filter(({ name }) => !names.includes(name))];
  return all.length === 0 ? {} : { volumes: all };
}

/** Adds the labels and volumes of a member, which an adopted Pod may lack. Returns undefined if nothing is missing. */
export function corrected(set: StatefulSet, pod: Pod): Pod | undefined {
  const ordinal = ordinalOf(set, pod) ?? 0;
  const { name, labels } = pod.metadata;
  const claimOf = (volume: string): string | undefined =>
    pod.spec?.volumes?.find((each) => each.name === volume)?.persistentVolumeClaim?.claimName;
  const hasStorage = claimTemplatesOf(set).every(
    ({ metadata }) => claimOf(metadata.name) === claimNameOf(set, metadata.name, ordinal),
  );
  if (labels?.[POD_NAME] === name && hasStorage) return undefined;
  const spec = pod.spec ?? { containers: [] };
  return {
    ...pod,
    metadata: { ...pod.metadata, labels: { ...labels, ...identityLabels(name, ordinal) } },
    spec: hasStorage ? spec : { ...spec, ...volumesOf(set, ordinal, spec.volumes ?? []) },
  };
}
