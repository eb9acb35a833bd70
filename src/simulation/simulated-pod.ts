import type { DeferContainer, Pod } from '../api/generated/types.ts';

/**
 * Returns a Pod of busybox containers as the API would store it. `each` is added to every app container, `eachSidecar` to every sidecar.
 * `defers` are the defer containers.
 */
export function simulatedPod(given: {
  init?: string[];
  sidecars?: string[];
  apps: string[];
  restartPolicy?: string;
  activeDeadlineSeconds?: number;
  graceSeconds?: number;
  each?: object;
  defers?: Partial<DeferContainer>[];
  eachSidecar?: object;
  spec?: object;
}): Pod {
  const container = (name: string) => ({ name, image: 'busybox:1.28', imagePullPolicy: 'IfNotPresent' });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'simulated', namespace: 'default', uid: 'uid-1', generation: 1 },
    spec: {
      nodeName: 'node',
      restartPolicy: given.restartPolicy ?? 'Always',
      terminationGracePeriodSeconds: given.graceSeconds ?? 30,
      ...(given.activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds: given.activeDeadlineSeconds }),
      initContainers: [
        ...(given.sidecars ?? []).map((name) => ({
          ...container(name),
          restartPolicy: 'Always',
          ...given.eachSidecar,
        })),
        ...(given.init ?? []).map(container),
      ],
      containers: given.apps.map((name) => ({ ...container(name), ...given.each })),
      ...(given.defers === undefined
        ? {}
        : { deferContainers: given.defers.map((entry, i) => ({ ...container(`defer-${i + 1}`), ...entry })) }),
      ...given.spec,
    },
    status: { phase: 'Pending' },
  };
}
