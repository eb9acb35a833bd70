import type { EndpointSlice, Namespace, Service } from '../../api/generated/types.ts';
import { isPortNumber } from '../../machinery/names.ts';
import type { PortRecord, PutMessage, ServiceRecord, SliceRecord } from '../dns-server/protocol.ts';

const SERVICE_LABEL = 'kubernetes.io/service-name';

export const namespaceRecord = ({ metadata }: Namespace): PutMessage => ({
  op: 'put',
  kind: 'namespace',
  record: { name: metadata.name ?? '' },
});

export function serviceRecord({ metadata, spec }: Service): PutMessage {
  const isAlias = spec?.type === 'ExternalName';
  const ips = spec?.clusterIPs ?? [spec?.clusterIP ?? ''];
  const record: ServiceRecord = {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    ips: isAlias ? [] : ips.filter((ip) => ip !== '' && ip !== 'None'),
    ports: (spec?.ports ?? []).map(portRecord),
    ...(isAlias ? { externalName: (spec.externalName ?? '').replace(/\.$/, '') } : {}),
  };
  return { op: 'put', kind: 'service', record };
}

/**
 * Returns the record of the slice's ready endpoints. An endpoint whose readiness is unknown counts as ready. publishNotReadyAddresses needs
 * no rule: all endpoints in the slices of such a Service are marked as ready. Source: discovery.k8s.io/v1, EndpointConditions.
 */
export function sliceRecord({ metadata, addressType, endpoints, ports }: EndpointSlice): PutMessage {
  const ready = addressType === 'FQDN' ? [] : (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false);
  const record: SliceRecord = {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    service: metadata.labels?.[SERVICE_LABEL] ?? '',
    ports: (ports ?? []).filter(({ port }) => isPortNumber(port)).map(portRecord),
    endpoints: ready.map(({ addresses, hostname }) => [addresses[0] ?? '', hostname ?? '']),
  };
  return { op: 'put', kind: 'slice', record };
}

const portRecord = ({ name, protocol, port }: { name?: string; protocol?: string; port?: number }): PortRecord => ({
  name: (name ?? '').toLowerCase(),
  protocol: (protocol ?? 'TCP').toLowerCase(),
  port: port ?? 0,
});
