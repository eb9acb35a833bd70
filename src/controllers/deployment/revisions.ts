/**
 * Determines the revisions of a Deployment: which ReplicaSet has its template, their numbers and annotations, new ReplicaSets, and old
 * ReplicaSets that are no longer kept. The functions are pure.
 * Source: pkg/controller/deployment/sync.go and util/deployment_util.go of v1.33 (behavior).
 */
import { sameValue } from '../../api/core/v1/pod/compare.ts';
import { MAX_INT32 } from '../../api/core/v1/pod/validation/validate-values.ts';
import type { Deployment, PodTemplateSpec, ReplicaSet } from '../../api/generated/types.ts';
import { DEPLOYMENTS } from '../../api/resources.ts';
import { controllerReference, type OwnerKind } from '../ownership/owner.ts';
import { sameTemplate } from '../ownership/same-template.ts';
import { templateHash } from '../ownership/template-hash.ts';
import { createdAt, currentSize, DESIRED, MAX, olderFirst, type Rollout, resized } from './rollout.ts';

export const DEPLOYMENT: OwnerKind = { apiVersion: 'apps/v1', kind: 'Deployment', resource: DEPLOYMENTS };
export const HASH = 'pod-template-hash';
export const REVISION = 'deployment.kubernetes.io/revision';
const HISTORY = 'deployment.kubernetes.io/revision-history';
/** The maximum length of the history in an annotation, in characters. Source: MaxRevHistoryLengthInChars of upstream's controller. */
const MAX_HISTORY_LENGTH = 2000;

/** The annotations that are not copied from a Deployment to its ReplicaSets. The controller sets some of them itself, to other values. */
const OWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'deprecated.deployment.rollback.to',
  REVISION,
  HISTORY,
  DESIRED,
  MAX,
]);

function withoutHash(template: PodTemplateSpec | undefined): unknown {
  const { [HASH]: _, ...labels } = template?.metadata?.labels ?? {};
  return { ...template, metadata: { ...template?.metadata, labels } };
}

/** Whether the templates are equal apart from the label HASH. */
export const sameTemplateIgnoringHash = (a: PodTemplateSpec | undefined, b: PodTemplateSpec | undefined): boolean =>
  sameTemplate(withoutHash(a), withoutHash(b));

/** Returns the rollout of the Deployment. Of several ReplicaSets with its template, the oldest is the current one. */
export function rolloutOf(deployment: Deployment, sets: readonly ReplicaSet[]): Rollout {
  const ordered = [...sets].sort(olderFirst);
  const current = ordered.find(({ spec }) => sameTemplateIgnoringHash(spec?.template, deployment.spec?.template));
  return { deployment, current, old: ordered.filter((set) => set !== current) };
}

/** Returns the revision of a ReplicaSet or a Deployment; 0 if there is none. */
export const revisionOf = ({ metadata }: Pick<ReplicaSet, 'metadata'>): number => {
  const text = metadata.annotations?.[REVISION] ?? '';
  return /^\d+$/.test(text) ? Number(text) : 0;
};

/** Returns the revision of the current ReplicaSet: one more than the highest revision of the others. */
export const nextRevision = ({ old }: Rollout): number => Math.max(0, ...old.map(revisionOf)) + 1;

/**
 * Returns the annotations of the current ReplicaSet: its own, those of the Deployment except OWN_ANNOTATIONS, and the revision. If the
 * revision rises, the history gets the former one.
 */
function currentAnnotations(
  { deployment }: Rollout,
  own: Record<string, string>,
  revision: number,
): Record<string, string> {
  const annotations = { ...own };
  for (const [name, value] of Object.entries(deployment.metadata.annotations ?? {}))
    if (!OWN_ANNOTATIONS.has(name)) annotations[name] = value;
  const before = own[REVISION];
  if ((Number(before) || 0) >= revision) return annotations;
  annotations[REVISION] = String(revision);
  if (before !== undefined) annotations[HISTORY] = history(own[HISTORY], before);
  return annotations;
}

/** Appends the revision to the history, and drops the oldest ones if it becomes too long. */
function history(before: string | undefined, revision: string): string {
  const revisions = before ? [...before.split(','), revision] : [revision];
  while (revisions.length > 1 && revisions.join(',').length > MAX_HISTORY_LENGTH) revisions.shift();
  return revisions.join(',');
}

/** Returns the rollout in which the current ReplicaSet has the annotations and minReadySeconds of the Deployment. */
export function withSyncedCurrent(rollout: Rollout): Rollout {
  const { current, deployment } = rollout;
  if (current === undefined) return rollout;
  const own = current.metadata.annotations ?? {};
  const annotations = currentAnnotations(rollout, own, nextRevision(rollout));
  const minReadySeconds = deployment.spec?.minReadySeconds;
  if (sameValue(annotations, own) && (current.spec?.minReadySeconds ?? 0) === (minReadySeconds ?? 0)) return rollout;
  const spec = { ...current.spec, selector: current.spec?.selector ?? {}, minReadySeconds };
  return { ...rollout, current: { ...current, metadata: { ...current.metadata, annotations }, spec } };
}

/** Returns a new ReplicaSet with the template of the Deployment, and with as many replicas as it may have now. */
export function newReplicaSet(rollout: Rollout): ReplicaSet {
  const { deployment } = rollout;
  const { spec, status, metadata } = deployment;
  const hash = templateHash(spec?.template, status?.collisionCount ?? 0);
  const template = structuredClone(spec?.template) ?? {};
  const labels = { ...template.metadata?.labels, [HASH]: hash };
  const { selector } = spec ?? {};
  const set: ReplicaSet = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${metadata.name}-${hash}`,
      namespace: metadata.namespace ?? 'default',
      labels: { ...labels },
      annotations: currentAnnotations(rollout, {}, nextRevision(rollout)),
      ownerReferences: [controllerReference(deployment, DEPLOYMENT)],
    },
    spec: {
      replicas: 0,
      selector: { ...selector, matchLabels: { ...selector?.matchLabels, [HASH]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } as ReplicaSet['metadata'] },
      ...(spec?.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
    },
  };
  return resized(set, currentSize(rollout), deployment);
}

/** Returns the old ReplicaSets above the limit of the history that have no Pods, those with the lowest revisions first. */
export function obsolete({ deployment, old }: Rollout): ReplicaSet[] {
  const limit = deployment.spec?.revisionHistoryLimit ?? MAX_INT32;
  if (limit >= MAX_INT32) return [];
  const kept = old.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const surplus = Math.max(0, kept.length - limit);
  return kept
    .sort((a, b) => revisionOf(a) - revisionOf(b) || createdAt(a) - createdAt(b))
    .slice(0, surplus)
    .filter(({ metadata, status, spec }) => {
      const isObserved = (metadata.generation ?? 0) <= (status?.observedGeneration ?? 0);
      return isObserved && (status?.replicas ?? 0) === 0 && (spec?.replicas ?? 1) === 0;
    });
}
