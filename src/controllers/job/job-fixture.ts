import type { ContainerStatus, Job, JobSpec, JobStatus, Pod, PodCondition } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { RegistryBackend } from '../../client/registry-fixture.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

export const NOW: Millis = Date.UTC(2026, 0, 31, 12);
export const ago = (seconds: number): string => formatTime(NOW - seconds * 1000);

export const newJob = (spec: Partial<JobSpec> = {}): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'work', namespace: 'a' },
  spec: { template: { spec: { containers: [{ name: 'app', image: 'x' }], restartPolicy: 'Never' } }, ...spec },
});

/** Returns the Job of newJob() with the defaults that the API sets. */
export const storedJob = (
  spec: Partial<JobSpec> = {},
  status: JobStatus = {},
  metadata: Partial<ObjectMeta> = {},
): Job => {
  const job = newJob({
    ...(spec.parallelism === undefined ? { completions: 1 } : {}),
    parallelism: 1,
    backoffLimit: spec.backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1,
    completionMode: 'NonIndexed',
    podReplacementPolicy: spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed',
    ...spec,
  });
  return { ...job, metadata: { ...job.metadata, uid: 'job', ...metadata }, status: { startTime: ago(60), ...status } };
};

export interface JobPodState {
  phase?: string;
  index?: number;
  /** The failures of the index before this Pod. */
  failures?: number;
  ignored?: number;
  /** Whether the Pod has the finalizer; default: true. */
  tracked?: boolean;
  deleted?: boolean;
  deletedSecondsAgo?: number;
  node?: string;
  exitCode?: number;
  /** Seconds before NOW; default: 0. */
  endedSecondsAgo?: number;
  restarts?: number;
  ready?: boolean;
  defers?: boolean;
  conditions?: PodCondition[];
}

const FINALIZER = 'batch.kubernetes.io/job-tracking';
const KEY = 'batch.kubernetes.io/job-';

export function jobPod(name: string, state: JobPodState = {}): Pod {
  const { phase = 'Running', index, failures, ignored, tracked = true, deleted = false, node = 'n1' } = state;
  const { deletedSecondsAgo = 60, ready = false, conditions = [], defers = false } = state;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'a',
      uid: name,
      creationTimestamp: ago(60),
      annotations: {
        ...(index === undefined ? {} : { [`${KEY}completion-index`]: String(index) }),
        ...(failures === undefined ? {} : { [`${KEY}index-failure-count`]: String(failures) }),
        ...(ignored === undefined ? {} : { [`${KEY}index-ignored-failure-count`]: String(ignored) }),
      },
      ...(tracked ? { finalizers: [FINALIZER] } : {}),
      ...(deleted ? { deletionTimestamp: ago(deletedSecondsAgo - 30), deletionGracePeriodSeconds: 30 } : {}),
    },
    spec: {
      containers: [{ name: 'app', image: 'x' }],
      ...(node === '' ? {} : { nodeName: node }),
      ...(defers ? { deferContainers: [{ name: 'bye', image: 'x' }] } : {}),
    },
    status: {
      phase,
      conditions: [...(ready ? [{ type: 'Ready', status: 'True' as const }] : []), ...conditions],
      containerStatuses: [containerStatus(phase, state)],
    },
  };
}

function containerStatus(phase: string, { exitCode, endedSecondsAgo = 0, restarts = 0 }: JobPodState): ContainerStatus {
  const code = exitCode ?? { Succeeded: 0, Failed: 1 }[phase];
  const state =
    code === undefined ? {} : { state: { terminated: { exitCode: code, finishedAt: ago(endedSecondsAgo) } } };
  return { name: 'app', image: 'x', imageID: '', ready: false, restartCount: restarts, ...state } as ContainerStatus;
}

/**
 * Writes the status as the node does. First binds the Pod if it is neither bound nor being deleted. The phase Terminating stands for a Pod
 * that runs its defer containers: without `exitCode`, the status has a termination with the reason Completed, but a running container.
 */
export async function setPhase(
  backend: RegistryBackend,
  pod: Pod,
  phase: string,
  now: Millis,
  exitCode?: number,
): Promise<void> {
  const { name, namespace = '' } = pod.metadata;
  if (!pod.spec?.nodeName && pod.metadata.deletionTimestamp === undefined) {
    const target = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target };
    await backend.create(PODS, namespace, binding, { name, subresource: 'binding' });
  }
  const code = exitCode ?? { Succeeded: 0, Failed: 1 }[phase];
  const ended = { state: { terminated: { exitCode: code, finishedAt: formatTime(now), startedAt: formatTime(now) } } };
  const running = { state: { running: { startedAt: formatTime(now) } } };
  const container = { name: 'app', image: 'x', imageID: '', ready: false, restartCount: 0 };
  const containerStatuses = [{ ...container, ...(code === undefined ? running : ended) }];
  const ready = { type: 'Ready', status: phase === 'Running' ? 'True' : 'False', lastTransitionTime: formatTime(now) };
  const end = { reason: 'Completed', startedAt: formatTime(now), deadline: formatTime(now + 30_000) };
  const termination = phase === 'Terminating' ? { termination: end } : {};
  await backend.setStatus(PODS, namespace, name, { phase, conditions: [ready], containerStatuses, ...termination });
}
