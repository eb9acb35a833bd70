/**
 * Creates and corrects the objects that every cluster has, such as the Service `kubernetes`, through which Pods reach the API server.
 * Source: the controllers of v1.33's API server (systemnamespaces, defaultservicecidr, kubernetesservice).
 */

import { isDeepStrictEqual } from 'node:util';
import type { Service, ServiceCIDR } from '../../api/generated/types.ts';
import { NAMESPACES, PRIORITY_CLASSES, SERVICE_CIDRS, SERVICES } from '../../api/resources.ts';
import { systemPriorityClasses } from '../../api/scheduling.k8s.io/v1/priority-class/index.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { kubernetesServiceAddress, serviceCidrsOf } from '../admission/service-range.ts';

export const SYSTEM_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'] as const;

export interface BootstrapOptions {
  /** The range of the cluster IPs of Services, or two ranges of different IP families with a comma between them. */
  serviceCidr: string;
  apiServerPort: number;
}

export async function bootstrap(api: ResourceApi, options: BootstrapOptions): Promise<void> {
  for (const name of SYSTEM_NAMESPACES) {
    await ensure(() => api.create(NAMESPACES, undefined, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  }
  for (const each of systemPriorityClasses) await ensure(() => api.create(PRIORITY_CLASSES, undefined, each));
  await ensureServiceCidr(api, options);
  await ensureKubernetesService(api, options);
}

/** Creates the ServiceCIDR, or adds the second configured range to it if it has only the first. Like upstream, changes nothing else. */
async function ensureServiceCidr(api: ResourceApi, { serviceCidr }: BootstrapOptions): Promise<void> {
  const name = 'kubernetes';
  const cidrs = serviceCidrsOf(serviceCidr);
  const found = (await api.get(SERVICE_CIDRS, undefined, name).catch(absent)) as ServiceCIDR | undefined;
  const before = found?.spec?.cidrs ?? [];
  if (found === undefined) {
    const created = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name }, spec: { cidrs } };
    await ensure(() => api.create(SERVICE_CIDRS, undefined, created));
  } else if (before.length === 1 && cidrs.length === 2 && before[0] === cidrs[0]) {
    await api.update(SERVICE_CIDRS, { ...found, spec: { cidrs } } as KubeObject);
  }
}

async function ensureKubernetesService(api: ResourceApi, options: BootstrapOptions): Promise<void> {
  const wanted = kubernetesService(options);
  const { name } = wanted.metadata;
  const found = (await api.get(SERVICES, 'default', name).catch(absent)) as Service | undefined;
  // The cluster IP of a Service is immutable, so the Service must be deleted and created again.
  if (found !== undefined && found.spec?.clusterIP !== wanted.spec?.clusterIP) {
    await api.delete(SERVICES, 'default', name);
    await api.create(SERVICES, 'default', wanted as KubeObject);
  } else if (found === undefined) {
    await ensure(() => api.create(SERVICES, 'default', wanted as KubeObject));
  } else if (found.spec?.type !== wanted.spec?.type || !isDeepStrictEqual(found.spec?.ports, wanted.spec?.ports)) {
    await api.update(SERVICES, { ...found, spec: wanted.spec } as KubeObject);
  }
}

const kubernetesService = ({ serviceCidr, apiServerPort }: BootstrapOptions): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name: 'kubernetes',
    namespace: 'default',
    labels: { component: 'apiserver', provider: 'kubernetes' },
  },
  spec: {
    type: 'ClusterIP',
    clusterIP: kubernetesServiceAddress(serviceCidr),
    ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: apiServerPort }],
    sessionAffinity: 'None',
  },
});

/** AlreadyExists is success. */
export async function ensure(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
}

export function absent(error: unknown): undefined {
  if (isApiError(error, 'NotFound')) return undefined;
  throw error;
}
