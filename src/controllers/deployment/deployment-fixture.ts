/** Makes objects for the tests of Deployments. */
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

/** Returns the strategy RollingUpdate with these amounts. */
export const rolling = (maxSurge: number | string, maxUnavailable: number | string): DeploymentSpec['strategy'] => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable },
});

/** Returns a Deployment `web` in the namespace `a`. By default, the Deployment has 4 replicas, and one more or fewer during an update. */
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
  /** The image of the template; also the name of the ReplicaSet. */
  image: string;
  size: number;
  /** The number of available Pods; default: size. */
  available?: number;
  /** The number of Pods; default: size. */
  pods?: number;
  revision?: number;
  /** The values of the annotations DESIRED and MAX; default: no annotation. */
  desired?: number;
  max?: number;
  /** The age of the ReplicaSet; default: 60. */
  ageSeconds?: number;
  status?: ReplicaSetStatus;
  annotations?: Record<string, string>;
}

/** Returns a ReplicaSet of the Deployment `web`. */
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
