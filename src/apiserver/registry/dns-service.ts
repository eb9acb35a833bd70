/**
 * Creates and corrects the Service `kube-dns` and its EndpointSlice, through which clients find the cluster DNS. Pods need neither: their
 * resolv.conf contains an address of the machine on which the DNS listens.
 * Source: the Service that kubeadm v1.33 creates (name, labels, names of the ports).
 */

import { isDeepStrictEqual } from 'node:util';
import { MANAGED_BY_LABEL, SERVICE_NAME_LABEL } from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { EndpointSlice, Service } from '../../api/generated/types.ts';
import { SERVICES } from '../../api/resources.ts';
import { parseIp } from '../../machinery/ip.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { dnsServiceAddress } from '../admission/service-range.ts';
import { absent, ensure } from './bootstrap.ts';
import { ensureSlice } from './system-endpoints/ensure-slice.ts';

const NAMESPACE = 'kube-system';
const NAME = 'kube-dns';
const LABELS = { 'k8s-app': NAME, 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' };
const PORTS = [
  { name: 'dns', protocol: 'UDP', port: 53 },
  { name: 'dns-tcp', protocol: 'TCP', port: 53 },
];

/**
 * `serviceCidr`: the configured ranges, as in BootstrapOptions. The cluster IP of the Service is the address on which the DNS listens, or
 * any free address if another object has that address. Leaves an object that is being deleted unchanged: the caller calls again when the
 * deletion has ended.
 */
export async function ensureDnsService(api: ResourceApi, serviceCidr: string): Promise<void> {
  const address = dnsServiceAddress(serviceCidr);
  await ensureService(api, address);
  await ensureSlice(api, wantedSlice(address));
}

async function ensureService(api: ResourceApi, address: string): Promise<void> {
  const found = (await api.get(SERVICES, NAMESPACE, NAME).catch(absent)) as Service | undefined;
  if (found === undefined) return createService(api, address);
  if (found.metadata.deletionTimestamp !== undefined) return;
  const { spec = {}, metadata } = found;
  if (isForeign(spec, address) || (spec.clusterIP !== address && (await isFree(api, address)))) {
    // The cluster IP of a Service is immutable, and slices of a former selector remain until their Service is deleted.
    await api.delete(SERVICES, NAMESPACE, NAME);
    return createService(api, address);
  }
  const labels = { ...metadata.labels, ...LABELS };
  const { ports, ipFamilyPolicy } = wantedService(undefined).spec ?? {};
  const [clusterIPs, ipFamilies] = [spec.clusterIPs?.slice(0, 1), spec.ipFamilies?.slice(0, 1)];
  const wanted = {
    ...found,
    metadata: { ...metadata, labels },
    spec: { ...spec, ports, ipFamilyPolicy, clusterIPs, ipFamilies },
  };
  if (isDeepStrictEqual(wanted, found)) return;
  await api.update(SERVICES, wanted as KubeObject);
}

const isForeign = ({ type, clusterIP, selector }: NonNullable<Service['spec']>, address: string): boolean =>
  type !== 'ClusterIP' || familyOf(clusterIP) !== familyOf(address) || Object.keys(selector ?? {}).length > 0;

const familyOf = (address: string | undefined): string | undefined => parseIp(address ?? '')?.family;

/** If another object has the address, the Service gets any free address. */
async function createService(api: ResourceApi, address: string): Promise<void> {
  const create = (clusterIP: string | undefined) =>
    ensure(() => api.create(SERVICES, NAMESPACE, wantedService(clusterIP) as KubeObject));
  await create(address).catch((error: unknown) => {
    if (!isApiError(error, 'Invalid')) throw error;
    return create(undefined);
  });
}

async function isFree(api: ResourceApi, address: string): Promise<boolean> {
  const { metadata, ...rest } = wantedService(address);
  const probe = { ...rest, metadata: { ...metadata, name: undefined, generateName: `${NAME}-` } };
  try {
    await api.create(SERVICES, NAMESPACE, probe as unknown as KubeObject, { dryRun: true });
    return true;
  } catch (error) {
    if (isApiError(error, 'Invalid')) return false;
    throw error;
  }
}

const wantedService = (clusterIP: string | undefined): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: NAME, namespace: NAMESPACE, labels: LABELS },
  spec: {
    type: 'ClusterIP',
    ...(clusterIP === undefined ? {} : { clusterIP }),
    // The DNS listens on only one address.
    ipFamilyPolicy: 'SingleStack',
    ports: PORTS.map((port) => ({ ...port, targetPort: port.port })),
    sessionAffinity: 'None',
  },
});

const wantedSlice = (address: string): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: NAME,
    namespace: NAMESPACE,
    labels: { [SERVICE_NAME_LABEL]: NAME, [MANAGED_BY_LABEL]: 'system-object-controller.lifepod.io' },
  },
  addressType: familyOf(address) ?? 'IPv4',
  endpoints: [{ addresses: [address], conditions: { ready: true, serving: true, terminating: false } }],
  ports: PORTS,
});
