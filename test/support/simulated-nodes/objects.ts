/** Creates the Pods of tests of a simulated cluster, and reads their conditions. */
import type { Node, Pod, PodSpec } from '../../../src/api/generated/types.ts';

/** A Pod with the container `app`, in the namespace default. */
export const simplePod = (name: string, spec: Partial<PodSpec> = {}, app: object = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { containers: [{ name: 'app', image: 'busybox:1.28', ...app }], ...spec },
});

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
