import type { Pod, PodCondition, PodTemplateSpec, ReplicaSet, ReplicaSetSpec } from '../../api/generated/types.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

export const NOW: Millis = Date.UTC(2026, 0, 31, 12);

export const template: PodTemplateSpec = {
  metadata: { name: '', labels: { app: 'web' } },
  spec: { containers: [{ name: 'app', image: 'x' }] },
};

export const replicaSet = (spec: Partial<ReplicaSetSpec> = {}, metadata: Partial<ObjectMeta> = {}): ReplicaSet => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'web', namespace: 'a', ...metadata },
  spec: { replicas: 1, selector: { matchLabels: { app: 'web' } }, template, ...spec },
});

export interface PodState {
  node?: string;
  phase?: string;
  /** Seconds since the Pod became ready; absent: not ready. */
  readySeconds?: number;
  ageSeconds?: number;
  annotations?: Record<string, string>;
  labels?: Record<string, string>;
  restarts?: number;
  uid?: string;
  conditions?: PodCondition[];
  defers?: boolean;
}

const ago = (seconds: number): string => formatTime(NOW - seconds * 1000);

export function podInState(name: string, state: PodState = {}): Pod {
  const { node = 'n1', phase = 'Running', readySeconds, ageSeconds = 3600, restarts = 0, uid = name } = state;
  const { annotations = {}, labels = { app: 'web' }, conditions = [], defers = false } = state;
  const deferContainers = defers ? { deferContainers: [{ name: 'bye', image: 'x' }] } : {};
  const ready =
    readySeconds === undefined
      ? []
      : [{ type: 'Ready', status: 'True' as const, lastTransitionTime: ago(readySeconds) }];
  const container = { name: 'app', image: 'x', imageID: '', ready: true, restartCount: restarts };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a', uid, labels, annotations, creationTimestamp: ago(ageSeconds) },
    spec: { containers: [{ name: 'app', image: 'x' }], ...deferContainers, ...(node === '' ? {} : { nodeName: node }) },
    status: { phase, conditions: [...ready, ...conditions], containerStatuses: [container] },
  };
}
