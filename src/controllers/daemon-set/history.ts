/**
 * Manages the history of a DaemonSet: a ControllerRevision for each template. The functions are pure.
 * Source: pkg/controller/daemon/update.go of v1.33 (behavior).
 */
import type { ControllerRevision, DaemonSet, Pod } from '../../api/generated/types.ts';
import { type History, oldest, type RevisionKind } from '../revisions/history.ts';
import { HASH } from './daemons.ts';
import { DAEMON_SET } from './placement.ts';

export const DAEMON_SET_REVISIONS: RevisionKind = { owner: DAEMON_SET, hashLabel: HASH };

export const hashOf = ({ metadata }: ControllerRevision): string => metadata.labels?.[HASH] ?? '';

/** Returns the oldest revisions in excess of revisionHistoryLimit. Revisions of existing Pods are kept. */
export function obsoleteRevisions(daemonSet: DaemonSet, { old }: History, pods: readonly Pod[]): ControllerRevision[] {
  const surplus = old.length - (daemonSet.spec?.revisionHistoryLimit ?? 10);
  const live = new Set(pods.map(({ metadata }) => metadata.labels?.[HASH]));
  return oldest(
    old.filter((revision) => !live.has(hashOf(revision))),
    surplus,
  );
}
