/**
 * Determines when a Job counts its Pods, and builds new Pods. The functions are pure. A deleted Pod with defer containers counts when its
 * phase is final, after its defer containers have ended.
 * Source: pkg/controller/job/job_controller.go and indexed_job_utils.go of v1.33 (behavior); for defer containers their specification,
 * "Workloads".
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Container, Job, JobSpec, Pod } from '../../api/generated/types.ts';
import { JOBS } from '../../api/resources.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { OwnerKind } from '../ownership/owner.ts';
import { hasDeferContainers } from '../ownership/owner-deleted.ts';
import { readyCondition } from '../ownership/pod-state.ts';
import { type DeletionReason, podFromTemplate } from '../ownership/pods-of-owner.ts';

export const JOB: OwnerKind = { apiVersion: 'batch/v1', kind: 'Job', resource: JOBS };
/** Keeps a Pod in the API until its Job has counted the Pod. */
export const FINALIZER = 'batch.kubernetes.io/job-tracking';
const INDEX = 'batch.kubernetes.io/job-completion-index';
const FAILURES = 'batch.kubernetes.io/job-index-failure-count';
const IGNORED_FAILURES = 'batch.kubernetes.io/job-index-ignored-failure-count';
const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';
/** In characters. The API shortens a longer metadata.generateName. */
const MAX_PREFIX_LENGTH = 58;
const MAX_INT32 = 2 ** 31 - 1;

/** Whether the Job has not counted the Pod yet. */
export const isTracked = ({ metadata }: Pod): boolean => (metadata.finalizers ?? []).includes(FINALIZER);

export const isIndexed = ({ completionMode }: JobSpec): boolean => completionMode === 'Indexed';

/** Whether a Pod that is being deleted is replaced only after it has ended. */
export const replacesEndedOnly = ({ podReplacementPolicy, podFailurePolicy }: JobSpec): boolean =>
  podReplacementPolicy === 'Failed' || podFailurePolicy !== undefined;

/** Returns the completion index of the Pod; undefined if the annotation is missing or invalid. */
export function indexOf({ metadata }: Pod): number | undefined {
  const text = metadata.annotations?.[INDEX] ?? '';
  return /^\+?\d+$/.test(text) ? Number(text) : undefined;
}

/** Whether the Pod can be counted. In an indexed Job, its index must be less than `completions`. */
export const isValid = (spec: JobSpec, pod: Pod): boolean =>
  !isIndexed(spec) || (indexOf(pod) ?? Number.POSITIVE_INFINITY) < (spec.completions ?? 0);

export type Outcome = 'succeeded' | 'failed';

const OWN_ENDS: readonly (string | undefined)[] = ['Completed', 'DeadlineExceeded'] satisfies DeletionReason[];

/** The reasons of a termination that begins without a deletion. */
const ENDS_BY_ITSELF: readonly (string | undefined)[] = ['Completed', 'DeadlineExceeded'];

/** Whether the Job deleted the Pod because the Job had ended. Only Pods with defer containers have this condition. */
export const isEndedByJob = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp !== undefined &&
  (status?.conditions ?? []).some(
    (each) => each.type === 'DeletionReason' && each.status === 'True' && OWN_ENDS.includes(each.reason),
  );

/**
 * Returns how the Pod counts; undefined if it does not count yet. `isFailing`: the Job fails, so Pods that have not ended count as failed,
 * except bound Pods with defer containers. A Pod that the Job deleted because the Job had ended counts as failed, even if its phase is
 * Succeeded.
 */
export function outcomeOf(spec: JobSpec, pod: Pod, isFailing = false): Outcome | undefined {
  if (pod.status?.phase === 'Succeeded') return isEndedByJob(pod) ? 'failed' : 'succeeded';
  if (pod.status?.phase === 'Failed') return 'failed';
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  if (!isDeleted && !isFailing) return undefined;
  // No node writes the phase of an unscheduled Pod, and no node will start it.
  if (!pod.spec?.nodeName) return 'failed';
  if (hasDeferContainers(pod)) return undefined;
  return isFailing || !replacesEndedOnly(spec) ? 'failed' : undefined;
}

/**
 * Whether the Pod runs its defer containers and began to end before it was deleted, for example because its containers completed. Its work
 * is done, so the Pod counts even if the Job deletes it as surplus.
 */
export const isEndingByItself = (pod: Pod): boolean =>
  hasDeferContainers(pod) && !hasEnded(pod) && ENDS_BY_ITSELF.includes(pod.status?.termination?.reason);

/** Whether the Pod is bound, is being deleted and has not ended. */
export const isTerminating = (pod: Pod): boolean =>
  pod.metadata.deletionTimestamp !== undefined && !hasEnded(pod) && Boolean(pod.spec?.nodeName);

/** Returns how often the index failed before this Pod: failures that count, and failures that the podFailurePolicy ignores. */
export const indexFailures = ({ metadata }: Pod): { counted: number; ignored: number } => ({
  counted: countOf(metadata.annotations?.[FAILURES]),
  ignored: countOf(metadata.annotations?.[IGNORED_FAILURES]),
});

const countOf = (text = ''): number => (/^\+?\d+$/.test(text) && Number(text) <= MAX_INT32 ? Number(text) : 0);

/**
 * Returns when the last container exited. If this is unknown, returns when the Pod ceased to be ready, or else was deleted, or else was
 * created.
 */
export function finishedAt(pod: Pod): Millis {
  const { metadata, spec, status } = pod;
  const sidecars = new Set(
    (spec?.initContainers ?? []).filter((each) => each.restartPolicy === 'Always').map(({ name }) => name),
  );
  const containers = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
    // A defer container that did not run has no finishedAt.
    ...(status?.deferContainerStatuses ?? []).filter(({ state }) => state?.terminated?.finishedAt !== undefined),
  ];
  const exits = containers.map(({ state }) => parseTime(state?.terminated?.finishedAt));
  if (exits.length > 0 && !exits.includes(undefined)) return Math.max(...(exits as Millis[]));
  const ready = readyCondition(pod);
  const unready = ready?.status === 'False' ? parseTime(ready.lastTransitionTime) : undefined;
  if (unready !== undefined) return unready;
  const deletion = parseTime(metadata.deletionTimestamp);
  if (deletion !== undefined) return deletion - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  return parseTime(metadata.creationTimestamp) ?? 0;
}

export interface NewPod {
  /** Absent unless the Job is indexed. */
  index?: number;
  /** The earlier failures of the index; absent unless the Job limits failures per index. */
  failures?: { counted: number; ignored: number };
}

export function podFor(job: Job, { index, failures }: NewPod): Pod {
  const pod = podFromTemplate(job.spec?.template, job, JOB);
  const { metadata } = pod;
  metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), FINALIZER])];
  if (index === undefined) return pod;
  metadata.generateName = prefixOf(job.metadata.name, index);
  metadata.labels = { ...metadata.labels, [INDEX]: String(index) };
  metadata.annotations = { ...metadata.annotations, [INDEX]: String(index) };
  if (failures !== undefined) {
    metadata.annotations[FAILURES] = String(failures.counted);
    if (failures.ignored > 0) metadata.annotations[IGNORED_FAILURES] = String(failures.ignored);
  }
  const spec = pod.spec ?? { containers: [] };
  pod.spec = {
    ...spec,
    hostname: `${job.metadata.name}-${index}`,
    containers: spec.containers.map(withIndexVariable),
    ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(withIndexVariable) }),
    ...(spec.deferContainers === undefined ? {} : { deferContainers: spec.deferContainers.map(withIndexVariable) }),
  };
  return pod;
}

function prefixOf(name: string, index: number): string {
  const end = `-${index}-`;
  return `${name.slice(0, MAX_PREFIX_LENGTH - end.length)}${end}`;
}

function withIndexVariable<T extends Pick<Container, 'env'>>(container: T): T {
  const env = container.env ?? [];
  if (env.some(({ name }) => name === INDEX_VARIABLE)) return container;
  const variable = { name: INDEX_VARIABLE, valueFrom: { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } } };
  return { ...container, env: [...env, variable] };
}
