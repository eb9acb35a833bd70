import type {
  PersistentVolumeClaim,
  Pod,
  PodTemplateSpec,
  StatefulSet,
  StatefulSetSpec,
} from '../../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../../api/resources.ts';
import type { RegistryBackend } from '../../client/registry-fixture.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

export const templateWith = (image: string, spec: object = {}): PodTemplateSpec => ({
  metadata: { name: '', labels: { app: 'db' } },
  spec: { containers: [{ name: 'app', image }], ...spec },
});

export const claimTemplate = (name: string): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
});

export const statefulSet = (spec: Partial<StatefulSetSpec> = {}): StatefulSet => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db', namespace: 'a' },
  spec: { selector: { matchLabels: { app: 'db' } }, serviceName: 'dbs', template: templateWith('v1'), ...spec },
});

export const imageOf = ({ spec }: Pod): string => spec?.containers[0]?.image ?? '';

/** Binds the Pod as the scheduler does, and sets it to running and ready as the node does. */
export async function makeReady(backend: RegistryBackend, pod: Pod, now: Millis): Promise<void> {
  const { name, namespace = '' } = pod.metadata;
  if (!pod.spec?.nodeName) {
    const target = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target };
    await backend.create(PODS, namespace, binding, { name, subresource: 'binding' });
  }
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: formatTime(now) }];
  await backend.setStatus(PODS, namespace, name, { phase: 'Running', conditions });
}

/** Acts as the controllers that delete a claim that no Pod uses. */
export async function removeClaim(backend: RegistryBackend, name: string): Promise<void> {
  const type = 'application/merge-patch+json';
  await backend.patch(PERSISTENT_VOLUME_CLAIMS, 'a', name, type, { metadata: { finalizers: null } });
  await backend.remove(PERSISTENT_VOLUME_CLAIMS, 'a', name);
}
