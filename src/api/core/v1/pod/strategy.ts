/** The changes that the API server makes to a Pod on each write and delete. Source: pkg/registry/core/pod of v1.33 (behavior). */
import { likeOwnLabels } from '../../../../machinery/labels.ts';
import { formatTime } from '../../../../machinery/time.ts';
import type { DeleteOptions } from '../../../../ports/backend.ts';
import type {
  Pod,
  PodAffinity,
  PodAffinityTerm,
  PodCondition,
  PodStatus,
  PodTermination,
} from '../../../generated/types.ts';
import type { WriteContext } from '../../../kind.ts';
import { sameValue } from './compare.ts';
import { readAppArmorAnnotations } from './compatibility/app-armor.ts';
import { dropDisabledFields } from './compatibility/disabled-fields.ts';
import { keepOlderStatuses } from './compatibility/older-forms.ts';
import { currentSpec } from './defaults.ts';
import { isMirrorPod } from './mirror.ts';
import { hasEnded } from './status/final-phase.ts';
import { qosClass } from './status/qos.ts';

export function preparePodForCreate(pod: Pod, context: WriteContext): void {
  pod.metadata.generation = 1;
  dropDisabledFields(pod);
  addAffinityLabelKeys(pod);
  readAppArmorAnnotations(pod, context.warn);
  keepOlderStatuses(pod, undefined);
  pod.status = { phase: 'Pending', qosClass: qosClass(pod) };
  if ((pod.spec?.schedulingGates ?? []).length > 0) {
    pod.status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        lastTransitionTime: formatTime(context.now),
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  }
}

/**
 * Adds the Pod's own values of matchLabelKeys and mismatchLabelKeys to the selectors of its inter-Pod affinity, where clients see them and
 * the scheduler reads them. Source: applyMatchLabelKeysAndMismatchLabelKeys (behavior).
 */
function addAffinityLabelKeys({ metadata: { labels }, spec }: Pod): void {
  const terms = [spec?.affinity?.podAffinity, spec?.affinity?.podAntiAffinity].flatMap(affinityTerms);
  for (const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } of terms) {
    const added = [
      ...likeOwnLabels(matchLabelKeys, 'In', labels),
      ...likeOwnLabels(mismatchLabelKeys, 'NotIn', labels),
    ];
    if (labelSelector === undefined || added.length === 0) continue;
    labelSelector.matchExpressions = [...(labelSelector.matchExpressions ?? []), ...added];
  }
}

const affinityTerms = (affinity: PodAffinity | undefined): PodAffinityTerm[] => [
  ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
  ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
];

export function preparePodForUpdate(pod: Pod, old: Pod): void {
  if (old.status === undefined) delete pod.status;
  else pod.status = structuredClone(old.status);
  dropDisabledFields(pod, old);
  keepOlderStatuses(pod, old);
  const generation = old.metadata.generation ?? 0;
  pod.metadata.generation = sameValue(pod.spec, currentSpec(old)) ? old.metadata.generation : generation + 1;
}

/**
 * Returns the conditions with `condition`, which replaces one of the same type. If the replaced condition has the same status, keeps its
 * lastTransitionTime.
 */
export function withCondition(
  conditions: readonly PodCondition[] | undefined,
  condition: PodCondition,
  now: string,
): PodCondition[] {
  const old = conditions?.find((other) => other.type === condition.type);
  const transition = old?.status === condition.status ? (old.lastTransitionTime ?? now) : now;
  const updated = { ...condition, lastTransitionTime: transition };
  return old === undefined
    ? [...(conditions ?? []), updated]
    : (conditions ?? []).map((other) => (other.type === condition.type ? updated : other));
}

/**
 * Copies fields from `old` that an update of the status must not lose: a client whose types lack the termination and the statuses of defer
 * containers omits both, and the node may send a termination without the latest skipped entries if it has not seen them yet.
 */
export function keepTermination(status: PodStatus, old: Pod): void {
  const { termination, deferContainerStatuses } = old.status ?? {};
  if (termination !== undefined) {
    if (status.termination === undefined) status.termination = structuredClone(termination);
    else status.termination = withSkips(status.termination, termination.skip ?? []);
  }
  if (status.deferContainerStatuses === undefined && deferContainerStatuses !== undefined) {
    status.deferContainerStatuses = structuredClone(deferContainerStatuses);
  }
}

export function withSkips(termination: PodTermination, names: readonly string[]): PodTermination {
  const skip = [...new Set([...names, ...(termination.skip ?? [])])];
  return skip.length === 0 ? termination : { ...termination, skip };
}

/**
 * Decides whether a delete of the Pod is graceful (see KindDefinition.deletion). The first delete of a Pod that has no node or has ended is
 * immediate. A later delete can only shorten the grace period, which counts from the start of the termination.
 *
 * Unlike upstream, the first delete of a mirror Pod is also immediate, because there is nothing to end: the static Pod keeps running, and
 * its node creates the mirror Pod again. In upstream, the node does this while `kubectl delete` waits for the terminating mirror Pod. If
 * kubectl lists the Pods only when the new mirror Pod exists, it never sees the deletion and waits forever. Only the node can mark a
 * mirror Pod as terminating, when it ends the static Pod.
 */
export function podDeletion(
  pod: Pod,
  options: DeleteOptions,
  { byNode }: WriteContext,
): { now: true } | { now: false; graceSeconds: number } {
  const graceful = (seconds: number) =>
    seconds === 0 ? ({ now: true } as const) : ({ now: false, graceSeconds: seconds < 0 ? 1 : seconds } as const);
  const requested = options.gracePeriodSeconds;
  if (pod.metadata.deletionTimestamp !== undefined) {
    const current = pod.metadata.deletionGracePeriodSeconds;
    if (current === undefined) return { now: true };
    return graceful(requested === undefined ? current : Math.min(requested < 0 ? 1 : requested, current));
  }
  const isClientsMirror = isMirrorPod(pod) && byNode !== true;
  if (!pod.spec?.nodeName || hasEnded(pod) || isClientsMirror) return { now: true };
  return graceful(requested ?? pod.spec.terminationGracePeriodSeconds ?? 0);
}

export const podSelectableFields = (pod: Pod): Record<string, string> => ({
  'spec.nodeName': pod.spec?.nodeName ?? '',
  'spec.restartPolicy': pod.spec?.restartPolicy ?? '',
  'spec.schedulerName': pod.spec?.schedulerName ?? '',
  'spec.serviceAccountName': pod.spec?.serviceAccountName ?? '',
  'spec.hostNetwork': String(pod.spec?.hostNetwork ?? false),
  'status.phase': pod.status?.phase ?? '',
  'status.podIP': pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? '',
  'status.nominatedNodeName': pod.status?.nominatedNodeName ?? '',
});
