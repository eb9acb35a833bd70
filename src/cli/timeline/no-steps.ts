/** Explains why there is nothing to draw for a Pod of which the node has recorded no steps. Pure. */
import type { Hints } from '../hints.ts';
import { type PodLife, titleOf } from '../records.ts';

export function noSteps(life: PodLife, hints: Hints): string {
  const { name, namespace, pod } = life;
  const { phase, reason, containerStatuses = [] } = pod?.status ?? {};
  const nodeName = pod?.spec?.nodeName;
  // A Pod that a node has rejected fails without statuses of its containers.
  const isRejected = phase === 'Failed' && nodeName !== undefined && containerStatuses.length === 0;
  const what = isRejected
    ? `its node ${nodeName} rejected it${reason ? ` (${reason})` : ''}, so that none of its containers ran`
    : 'it has not reached a node yet';
  return `${titleOf(life)}: ${what}; '${hints.lifepod(`why ${name} -n ${namespace}`)}' shows why`;
}
