/**
 * The history of a DaemonSet: a ControllerRevision for each template. Pure.
 * Source: pkg/controller/daemon/update.go of v1.33 (behavior). The content is a strategic merge patch that restores the template, which
 * `kubectl rollout undo` applies.
 */
import type { ControllerRevision, DaemonSet, Pod } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS } from '../../api/resources.ts';
import { controllerReference } from '../ownership/owner.ts';
import { sameTemplate } from '../ownership/same-template.ts';
import { templateHash } from '../ownership/template-hash.ts';
import { HASH } from './daemons.ts';
import { DAEMON_SET } from './placement.ts';

export const REVISIONS = CONTROLLER_REVISIONS;

export interface History {
  /** The revision of the current template; undefined if it does not exist yet. */
  current: ControllerRevision | undefined;
  /** Further revisions of the current template, which should not exist. */
  duplicates: ControllerRevision[];
  old: ControllerRevision[];
  /** The number that the current revision must have: higher than all old ones. */
  revision: number;
}

const contentOf = ({ spec }: DaemonSet) => ({ spec: { template: { ...spec?.template, $patch: 'replace' } } });

export const hashOf = ({ metadata }: ControllerRevision): string => metadata.labels?.[HASH] ?? '';

export function historyOf(daemonSet: DaemonSet, revisions: readonly ControllerRevision[]): History {
  const content = contentOf(daemonSet);
  const [same = [], old = []] = [true, false].map((wanted) =>
    revisions.filter(({ data }) => sameTemplate(data, content) === wanted),
  );
  const [current, ...duplicates] = same.sort((a, b) => b.revision - a.revision);
  const last = Math.max(0, ...old.map(({ revision }) => revision));
  const revision = current !== undefined && current.revision > last ? current.revision : last + 1;
  return { current, duplicates, old, revision };
}

export function newRevision(daemonSet: DaemonSet, revision: number): ControllerRevision {
  const { metadata, spec, status } = daemonSet;
  const hash = templateHash(spec?.template, status?.collisionCount ?? 0);
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${metadata.name}-${hash}`,
      namespace: metadata.namespace ?? 'default',
      labels: { ...spec?.template?.metadata?.labels, [HASH]: hash },
      annotations: { ...metadata.annotations },
      ownerReferences: [controllerReference(daemonSet, DAEMON_SET)],
    },
    data: contentOf(daemonSet),
    revision,
  };
}

export const hasContentOf = (revision: ControllerRevision, daemonSet: DaemonSet): boolean =>
  sameTemplate(revision.data, contentOf(daemonSet));

/** Returns the oldest revisions above the limit of the history that no Pod has. */
export function obsoleteRevisions(daemonSet: DaemonSet, { old }: History, pods: readonly Pod[]): ControllerRevision[] {
  const surplus = old.length - (daemonSet.spec?.revisionHistoryLimit ?? 10);
  if (surplus <= 0) return [];
  const live = new Set(pods.map(({ metadata }) => metadata.labels?.[HASH]));
  return [...old]
    .sort((a, b) => a.revision - b.revision)
    .filter((revision) => !live.has(hashOf(revision)))
    .slice(0, surplus);
}
