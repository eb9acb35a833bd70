/** The functions are pure. */
import { withCondition } from '../../api/core/v1/pod/strategy.ts';
import type { Pod } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import type { Wanted } from './manifests.ts';
import type { PodRecord } from './status-files.ts';

export interface Step {
  kind: 'begin' | 'end';
  record: PodRecord;
  /** Replaced: the manifest was changed. Absent for other ends and for starts. */
  reason?: 'Replaced';
}

/** `slots`: the Pods that run, by full name. `begins`: whether the node starts Pods now. */
export function nextSteps(
  slots: ReadonlyMap<string, PodRecord>,
  { pods, unreadable }: Wanted,
  begins: boolean,
): Step[] {
  const steps: Step[] = [];
  for (const [fullName, record] of slots) {
    if (record.pod.metadata.deletionTimestamp !== undefined) continue;
    const next = pods.get(fullName);
    const kept = next === undefined ? unreadable.has(record.file) : next.pod.metadata.uid === record.pod.metadata.uid;
    if (!kept) steps.push({ kind: 'end', record, reason: next === undefined ? undefined : 'Replaced' });
    else if (begins && isShutDown(record.pod)) steps.push({ kind: 'end', record });
  }
  if (begins) for (const [fullName, record] of pods) if (!slots.has(fullName)) steps.push({ kind: 'begin', record });
  return steps;
}

/**
 * Whether a shutdown of the machine ended the Pod or kept it from starting. As upstream, such a static Pod starts again with the machine.
 */
export const isShutDown = ({ status }: Pick<Pod, 'status'>): boolean =>
  status?.phase === 'Failed' && (status.reason === 'Terminated' || status.reason === 'NodeShutdown');

/** Returns the record of a Pod that begins now. The time of creation tells the lives of a Pod apart, which have the same UID. */
export const beginning = ({ file, pod }: PodRecord, now: number): PodRecord => ({
  file,
  pod: { ...pod, metadata: { ...pod.metadata, creationTimestamp: formatTime(now) } },
});

/** Returns the record as it was before terminating(), but without a status. */
export function asBeforeTermination(record: PodRecord): PodRecord {
  const { status, metadata, ...pod } = record.pod;
  const { deletionTimestamp, deletionGracePeriodSeconds, generation, ...kept } = metadata;
  const before = (generation ?? 1) - (deletionTimestamp === undefined ? 0 : 1);
  return { ...record, pod: { ...pod, metadata: { ...kept, ...(before > 0 ? { generation: before } : {}) } } };
}

/**
 * Returns the Pod as a delete request to the API would change it. `reason` determines which defer containers run; `given` replaces the
 * grace period of the Pod.
 * Sources: the kubelet of v1.33, which gives a static Pod at least one second; the specification of defer containers.
 */
export function terminating(pod: Pod, now: number, reason: Step['reason'], given?: number): Pod {
  const graceSeconds = Math.max(1, given ?? pod.spec?.terminationGracePeriodSeconds ?? 30);
  const condition = {
    type: 'DeletionReason',
    status: 'True',
    lastTransitionTime: formatTime(now),
    reason: reason ?? '',
  };
  const hasReason = reason !== undefined && (pod.spec?.deferContainers ?? []).length > 0;
  const conditions = withCondition(pod.status?.conditions, condition, formatTime(now));
  return {
    ...pod,
    ...(hasReason ? { status: { ...pod.status, conditions } } : {}),
    metadata: {
      ...pod.metadata,
      generation: (pod.metadata.generation ?? 0) + 1,
      deletionTimestamp: formatTime(now + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
    },
  };
}

/**
 * Returns a terminating Pod as a second delete request would change it; undefined if the Pod is not terminating, or if the request would
 * not end the Pod sooner.
 */
export function shortened({ metadata, ...pod }: Pod, now: number, graceSeconds: number | undefined): Pod | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  const seconds = Math.max(1, graceSeconds ?? Number.POSITIVE_INFINITY);
  if (deletionTimestamp === undefined || seconds >= deletionGracePeriodSeconds) return undefined;
  const deletion = { deletionTimestamp: formatTime(now + seconds * 1000), deletionGracePeriodSeconds: seconds };
  return { ...pod, metadata: { ...metadata, ...deletion } };
}

export const endingSooner = (
  slots: ReadonlyMap<string, PodRecord>,
  now: number,
  graceSeconds: number | undefined,
): PodRecord[] =>
  [...slots.values()].flatMap((record) => {
    const pod = shortened(record.pod, now, graceSeconds);
    return pod === undefined ? [] : [{ ...record, pod }];
  });
