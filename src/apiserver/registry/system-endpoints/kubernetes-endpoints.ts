/**
 * The endpoint of the Service `kubernetes`: the address at which Pods reach the API server.
 * Source: the endpoint reconciler of v1.33's API server (pkg/controlplane/reconcilers: names, labels, the name of the port).
 */
import { isDeepStrictEqual } from 'node:util';
import { SERVICE_NAME_LABEL, SKIP_MIRROR_LABEL } from '../../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { Endpoints } from '../../../api/generated/types.ts';
import { ENDPOINTS } from '../../../api/resources.ts';
import { parseIp } from '../../../machinery/ip.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { ResourceApi } from '../../../ports/backend.ts';
import { absent, ensure } from '../bootstrap.ts';
import { ensureSlice } from './ensure-slice.ts';

const [NAMESPACE, NAME] = ['default', 'kubernetes'];

export interface ApiEndpoint {
  ip: string;
  port: number;
}

/**
 * Creates the Endpoints and the EndpointSlice `default/kubernetes`, and corrects them if they differ. Leaves an object that is being
 * deleted unchanged.
 */
export async function ensureKubernetesEndpoints(api: ResourceApi, { ip, port }: ApiEndpoint): Promise<void> {
  const ports = [{ name: 'https', port, protocol: 'TCP' }];
  const endpoints = ensureEndpoints(api, {
    apiVersion: 'v1',
    kind: 'Endpoints',
    // As in upstream, the controller that copies Endpoints to slices must skip these Endpoints, because the slice is written below.
    metadata: { name: NAME, namespace: NAMESPACE, labels: { [SKIP_MIRROR_LABEL]: 'true' } },
    subsets: [{ addresses: [{ ip }], ports }],
  });
  const slice = ensureSlice(api, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: NAME, namespace: NAMESPACE, labels: { [SERVICE_NAME_LABEL]: NAME } },
    addressType: parseIp(ip)?.family ?? 'IPv4',
    endpoints: [{ addresses: [ip], conditions: { ready: true } }],
    ports,
  });
  await Promise.all([endpoints, slice]);
}

async function ensureEndpoints(api: ResourceApi, wanted: Endpoints): Promise<void> {
  const found = (await api.get(ENDPOINTS, NAMESPACE, NAME).catch(absent)) as Endpoints | undefined;
  if (found === undefined) return ensure(() => api.create(ENDPOINTS, NAMESPACE, wanted as KubeObject));
  if (found.metadata.deletionTimestamp !== undefined) return;
  const labels = { ...found.metadata.labels, ...wanted.metadata.labels };
  const { subsets } = wanted;
  if (isDeepStrictEqual([found.subsets, found.metadata.labels], [subsets, labels])) return;
  await api.update(ENDPOINTS, { ...found, metadata: { ...found.metadata, labels }, subsets } as KubeObject);
}
