/** Finds the Pods and Jobs of a session that were deleted before they had ended: they have not failed by themselves. */
import { hasEnded } from '../../../api/core/v1/pod/status/final-phase.ts';
import type { Job, Pod } from '../../../api/generated/types.ts';
import { type KubeObject, uidOf } from '../../../machinery/meta.ts';
import { isJobFinished } from '../../workloads/refused-pods.ts';
import type { Seen, SessionState } from '../session-state.ts';

const isOver = {
  pods: (object: KubeObject): boolean => hasEnded(object as Pod),
  jobs: (object: KubeObject): boolean => isJobFinished(object as Job),
};

/** Adds the UID of the object to `cut` if the object is deleted and had not ended before. `before`: how it was seen last, if it was. */
export function noteCut(
  cut: Set<string>,
  kind: 'pods' | 'jobs',
  before: Seen<KubeObject> | undefined,
  { object, isGone }: Seen<KubeObject>,
): void {
  const isDeleted = isGone || object.metadata.deletionTimestamp !== undefined;
  if (isDeleted && !isOver[kind]((before ?? { object }).object)) cut.add(uidOf(object));
}

/** Returns whether a Pod or Job of the manifests was deleted before it had ended. The session deletes none before it is over. */
export const isCut = ({ ending, cut }: SessionState): boolean => [...ending].some((uid) => cut.has(uid));

/** Returns the state without the Pods and Jobs that were deleted before they had ended. */
export const withoutCut = (state: SessionState): SessionState => ({
  ...state,
  pods: new Map([...state.pods].filter(([uid]) => !state.cut.has(uid))),
  jobs: new Map([...state.jobs].filter(([uid]) => !state.cut.has(uid))),
});
