/**
 * Handles the condition DeletionReason, with which a workload controller marks a Pod before it deletes the Pod. Source: the specification
 * of defer containers.
 */
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { uidOf } from '../../machinery/meta.ts';
import { formatTime } from '../../machinery/time.ts';
import type { DeletionReason, PodWriter } from './pods-of-owner.ts';

const OWN_REASONS: readonly (string | undefined)[] = [
  'ScaledDown',
  'Replaced',
  'Completed',
  'DeadlineExceeded',
] satisfies DeletionReason[];

/** Whether a workload controller has marked the Pod for deletion. The mark remains after a crash or a failed delete. */
export const isMarked = ({ status }: Pod): boolean =>
  (status?.conditions ?? []).some(
    (each) => each.type === 'DeletionReason' && each.status === 'True' && OWN_REASONS.includes(each.reason),
  );

/** Sets the condition DeletionReason to False. Succeeds if the Pod has been deleted or replaced. */
export async function unmarkPod({ client, now }: PodWriter, pod: Pod): Promise<void> {
  const { name, namespace } = pod.metadata;
  const condition = { type: 'DeletionReason', status: 'False', lastTransitionTime: formatTime(now()) };
  const change = { metadata: { uid: uidOf(pod) }, status: { conditions: [condition] } };
  const type = 'application/strategic-merge-patch+json';
  await unlessChanged(client.resource<Pod>(PODS).patch(name, namespace, type, change, 'status'));
}
