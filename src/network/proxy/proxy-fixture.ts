import type { Endpoint, EndpointSlice, Service, ServicePort, ServiceSpec } from '../../api/generated/types.ts';

/** Returns a Service in the namespace `default` as the API server stores it, with one TCP port, 80 to 8080. */
export function serviceOf(name: string, spec: ServiceSpec = {}, metadata: Partial<Service['metadata']> = {}): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default', uid: name, creationTimestamp: '2025-01-01T00:00:00Z', ...metadata },
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.0.1',
      clusterIPs: [spec.clusterIP ?? '10.96.0.1'],
      ipFamilies: ['IPv4'],
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [portOf(80)],
      ...spec,
    },
    status: { loadBalancer: {} },
  };
}

export const portOf = (port: number, rest: Partial<ServicePort> = {}): ServicePort => ({
  port,
  protocol: 'TCP',
  targetPort: 8080,
  ...rest,
});

export interface EndpointOptions {
  node?: string;
  ready?: boolean;
  serving?: boolean;
  terminating?: boolean;
  zones?: string[];
}

export function endpoint(address: string, options: EndpointOptions = {}): Endpoint {
  const { node = 'n1', ready = true, serving = ready, terminating = false, zones } = options;
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    nodeName: node,
    ...(zones === undefined ? {} : { hints: { forZones: zones.map((name) => ({ name })) } }),
  };
}

/** The slice has the port 8080 for each port of the Service. */
export function sliceOf(service: Service, endpoints: Endpoint[], rest: Partial<EndpointSlice> = {}): EndpointSlice {
  const addressType = endpoints[0]?.addresses[0]?.includes(':') === true ? 'IPv6' : 'IPv4';
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service.metadata.name}-${addressType.toLowerCase()}`,
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': service.metadata.name ?? '' },
    },
    addressType,
    endpoints,
    ports: (service.spec?.ports ?? []).map(({ name, protocol }) => ({
      name: name ?? '',
      port: 8080,
      ...(protocol === undefined ? {} : { protocol }),
    })),
    ...rest,
  };
}
