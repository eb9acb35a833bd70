import type {
  Deployment,
  DeploymentSpec,
  PodTemplateSpec,
  ReplicaSet,
  ReplicaSetStatus,
} from '../../api/generated/types.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { controllerReference } from '../ownership/owner.ts';
import { DEPLOYMENT, HASH, REVISION } from './revisions.ts';
import { DESIRED, MAX } from './rollout.ts';

export const NOW: Millis = Date.UTC(2026, 0, 31, 12);

export const templateWith = (image: string): PodTemplateSpec => ({
  metadata: { name: '', labels: { app: 'web' } },
  spec: { containers: [{ name: 'app', image }] },
});

export const rolling = (maxSurge: number | string, maxUnavailable: number | string): DeploymentSpec['strategy'] => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable },
});

export const deployment = (
  spec: Partial<DeploymentSpec> = {},
  metadata: Partial<ObjectMeta> = {},
  status: Deployment['status'] = {},
): Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'a', uid: 'web', ...metadata },
  spec: {
    replicas: 4,
    selector: { matchLabels: { app: 'web' } },
    template: templateWith('v1'),
    strategy: rolling(1, 1),
    ...spec,
  },
  status,
});

export interface SetState {
  /** The image of the template, and the name of the ReplicaSet. */
  image: string;
  size: number;
  available?: number;
  pods?: number;
  revision?: number;
  desired?: number;
  max?: number;
  ageSeconds?: number;
  status?: ReplicaSetStatus;
  annotations?: Record<string, string>;
}

export function setOf(state: SetState): ReplicaSet {
  const { image, size, available = size, pods = size, revision, desired, max, ageSeconds = 60 } = state;
  const annotations = { ...state.annotations };
  if (revision !== undefined) annotations[REVISION] = String(revision);
  if (desired !== undefined) annotations[DESIRED] = String(desired);
  if (max !== undefined) annotations[MAX] = String(max);
  const labels = { app: 'web', [HASH]: image };
  const template = templateWith(image);
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: image,
      namespace: 'a',
      uid: image,
      labels,
      annotations,
      creationTimestamp: formatTime(NOW - ageSeconds * 1000),
      ownerReferences: [controllerReference(deployment(), DEPLOYMENT)],
    },
    spec: {
      replicas: size,
      selector: { matchLabels: labels },
      template: { ...template, metadata: { name: '', labels } },
    },
    status: { replicas: pods, readyReplicas: available, availableReplicas: available, ...state.status },
  };
}
