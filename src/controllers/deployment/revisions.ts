/**
 * Determines the current ReplicaSet of a Deployment, the revisions and annotations of its ReplicaSets, and the old ReplicaSets to delete.
 * The functions are pure.
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
/** In characters. Source: MaxRevHistoryLengthInChars of upstream's controller. */
const MAX_HISTORY_LENGTH = 2000;

/** Annotations that are not copied from a Deployment to its ReplicaSets. */
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

export const sameTemplateIgnoringHash = (a: PodTemplateSpec | undefined, b: PodTemplateSpec | undefined): boolean =>
  sameTemplate(withoutHash(a), withoutHash(b));

/**
 * Divides the ReplicaSets of the Deployment into the current one and the old ones. The current ReplicaSet is the oldest one with the
 * template of the Deployment.
 */
export function rolloutOf(deployment: Deployment, sets: readonly ReplicaSet[]): Rollout {
  const ordered = [...sets].sort(olderFirst);
  const current = ordered.find(({ spec }) => sameTemplateIgnoringHash(spec?.template, deployment.spec?.template));
  return { deployment, current, old: ordered.filter((set) => set !== current) };
}

/** Returns the revision in the annotation; 0 if the object has no valid revision. */
export const revisionOf = ({ metadata }: Pick<ReplicaSet, 'metadata'>): number => {
  const text = metadata.annotations?.[REVISION] ?? '';
  return /^\d+$/.test(text) ? Number(text) : 0;
};

export const nextRevision = ({ old }: Rollout): number => Math.max(0, ...old.map(revisionOf)) + 1;

/**
 * Merges the annotations of the Deployment, except OWN_ANNOTATIONS, into the annotations of the current ReplicaSet, and sets the revision.
 * If the revision rises, the previous revision is appended to the history.
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

function history(before: string | undefined, revision: string): string {
  const revisions = before ? [...before.split(','), revision] : [revision];
  while (revisions.length > 1 && revisions.join(',').length > MAX_HISTORY_LENGTH) revisions.shift();
  return revisions.join(',');
}

/** Copies the annotations and minReadySeconds of the Deployment to the current ReplicaSet. Returns the same object if nothing differs. */
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

/** Returns the current ReplicaSet before its creation, with as many replicas as the strategy permits now. */
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

/**
 * Returns the ReplicaSets to delete: the oldest revisions in excess of revisionHistoryLimit, except those that are scaled up, still have
 * Pods, or have an outdated status.
 */
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
