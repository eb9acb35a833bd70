import type { Deployment, DeploymentSpec, Node, Pod, PodSpec, ReplicaSet } from '../../../src/api/generated/types.ts';

/** The Pod is in the namespace default, with the container `app`. */
export const simplePod = (name: string, spec: Partial<PodSpec> = {}, app: object = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { containers: [{ name: 'app', image: 'busybox:1.28', ...app }], ...spec },
});

/** The Pods have the label app=NAME. */
export const simpleReplicaSet = (name: string, replicas: number): ReplicaSet => {
  const labels = { app: name };
  const template = { metadata: { name: '', labels }, spec: simplePod(name, { terminationGracePeriodSeconds: 5 }).spec };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name, namespace: 'default' },
    spec: { replicas, selector: { matchLabels: labels }, template },
  };
};

export const simpleDeployment = (name: string, replicas: number, spec: Partial<DeploymentSpec> = {}): Deployment => {
  const { selector = {}, template = {} } = simpleReplicaSet(name, replicas).spec ?? {};
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: { replicas, selector, template, ...spec },
  };
};

interface Conditions {
  status?: { conditions?: readonly { type: string; status: string }[] };
}

export const conditionOf = (object: Conditions, type: string): string | undefined =>
  object.status?.conditions?.find((each) => each.type === type)?.status;

export const isReady = (object: Node | Pod): boolean => conditionOf(object, 'Ready') === 'True';

export const allReady =
  (count: number) =>
  (objects: readonly (Node | Pod)[]): boolean =>
    objects.length === count && objects.every(isReady);
