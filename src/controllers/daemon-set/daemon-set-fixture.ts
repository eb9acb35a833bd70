import type { DaemonSet, DaemonSetSpec, Node, Pod, PodTemplateSpec, Taint } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { RegistryBackend } from '../../client/registry-fixture.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { nodeOf } from './placement.ts';

export const templateWith = (image: string, spec: object = {}): PodTemplateSpec => ({
  metadata: { name: '', labels: { app: 'agent' } },
  spec: { containers: [{ name: 'app', image }], ...spec },
});

export const rolling = (
  maxSurge: number | string,
  maxUnavailable: number | string,
): DaemonSetSpec['updateStrategy'] => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable },
});

export const daemonSet = (spec: Partial<DaemonSetSpec> = {}): DaemonSet => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'agent', namespace: 'a' },
  spec: { selector: { matchLabels: { app: 'agent' } }, template: templateWith('v1'), ...spec },
});

export const node = (name: string, taints: Taint[] = [], labels: Record<string, string> = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
  spec: { taints },
});

export const imageOf = ({ spec }: Pod): string => spec?.containers[0]?.image ?? '';

/** Binds the Pod as the scheduler does, and sets it to running and ready as the node does. */
export async function makeReady(backend: RegistryBackend, pod: Pod, now: Millis): Promise<void> {
  const { name, namespace = '' } = pod.metadata;
  if (!pod.spec?.nodeName) {
    const target = { apiVersion: 'v1', kind: 'Node', name: nodeOf(pod) };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target };
    await backend.create(PODS, namespace, binding, { name, subresource: 'binding' });
  }
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: formatTime(now) }];
  await backend.setStatus(PODS, namespace, name, { phase: 'Running', conditions });
}
