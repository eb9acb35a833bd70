/**
 * Manages the history of DaemonSets and StatefulSets: a ControllerRevision for each template. The functions are pure.
 * Source: pkg/controller/history, pkg/controller/daemon/update.go and pkg/controller/statefulset of v1.33 (behavior). The content of a
 * revision is the strategic merge patch with which `kubectl rollout undo` restores the template.
 */
import type { ControllerRevision, PodTemplateSpec } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { controllerReference, type OwnerKind } from '../ownership/owner.ts';
import { sameTemplate } from '../ownership/same-template.ts';
import { templateHash } from '../ownership/template-hash.ts';

export interface RevisionOwner extends KubeObject {
  spec?: { template?: PodTemplateSpec; revisionHistoryLimit?: number };
  status?: { collisionCount?: number };
}

export interface RevisionKind {
  owner: OwnerKind;
  /** The key of the label with the hash of the template. */
  hashLabel: string;
}

export interface History {
  /** The revision of the current template; undefined if it does not exist yet. */
  current: ControllerRevision | undefined;
  /** Further revisions of the current template, which must be deleted. */
  duplicates: ControllerRevision[];
  old: ControllerRevision[];
  /** The number that the current revision must have: higher than the numbers of the old revisions. */
  revision: number;
}

const contentOf = ({ spec }: RevisionOwner) => ({ spec: { template: { ...spec?.template, $patch: 'replace' } } });

export function historyOf(owner: RevisionOwner, revisions: readonly ControllerRevision[]): History {
  const content = contentOf(owner);
  const [same = [], old = []] = [true, false].map((wanted) =>
    revisions.filter(({ data }) => sameTemplate(data, content) === wanted),
  );
  const [current, ...duplicates] = same.sort((a, b) => b.revision - a.revision);
  const last = Math.max(0, ...old.map(({ revision }) => revision));
  const revision = current !== undefined && current.revision > last ? current.revision : last + 1;
  return { current, duplicates, old, revision };
}

export function newRevision(owner: RevisionOwner, kind: RevisionKind, revision: number): ControllerRevision {
  const { metadata, spec, status } = owner;
  const hash = templateHash(spec?.template, status?.collisionCount ?? 0);
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${metadata.name}-${hash}`,
      namespace: metadata.namespace ?? 'default',
      labels: { ...spec?.template?.metadata?.labels, [kind.hashLabel]: hash },
      annotations: { ...metadata.annotations },
      ownerReferences: [controllerReference(owner, kind.owner)],
    },
    data: contentOf(owner),
    revision,
  };
}

/** Whether the revision records the owner's current template. */
export const hasContentOf = (revision: ControllerRevision, owner: RevisionOwner): boolean =>
  sameTemplate(revision.data, contentOf(owner));

/** Returns the recorded template; undefined if `data` contains none. */
export function templateOf({ data }: ControllerRevision): PodTemplateSpec | undefined {
  const recorded = (data as { spec?: { template?: PodTemplateSpec & { $patch?: string } } } | undefined)?.spec
    ?.template;
  if (recorded === undefined) return undefined;
  const { $patch: _, ...template } = recorded;
  return template;
}

export const oldest = (revisions: readonly ControllerRevision[], count: number): ControllerRevision[] =>
  [...revisions].sort((a, b) => a.revision - b.revision).slice(0, Math.max(0, count));
