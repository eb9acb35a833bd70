/** Defaults of a Service. Source: SetDefaults_Service of v1.33. */
import type { Service, ServiceSpec } from '../../../generated/types.ts';

/** Three hours. */
const DEFAULT_AFFINITY_SECONDS = 10_800;

export const isExternallyAccessible = ({ type, externalIPs }: ServiceSpec): boolean =>
  type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && (externalIPs ?? []).length > 0);

export function defaultService(service: Service): void {
  service.spec ??= {};
  const { spec } = service;
  spec.sessionAffinity ||= 'None';
  if (spec.sessionAffinity === 'None') {
    delete spec.sessionAffinityConfig;
  } else if (spec.sessionAffinity === 'ClientIP') {
    const timeoutSeconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_AFFINITY_SECONDS;
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds } };
  }
  spec.type ||= 'ClusterIP';
  for (const port of spec.ports ?? []) {
    port.protocol ||= 'TCP';
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') port.targetPort = port.port;
  }
  if (isExternallyAccessible(spec)) spec.externalTrafficPolicy ||= 'Cluster';
  if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ||= 'Cluster';
  if (spec.type !== 'LoadBalancer') return;
  spec.allocateLoadBalancerNodePorts ??= true;
  defaultIpModes(service);
}

/** VIP: packets keep the address of the load balancer as their destination. */
export function defaultIpModes({ status }: Service): void {
  for (const ingress of status?.loadBalancer?.ingress ?? []) if (ingress.ip) ingress.ipMode ??= 'VIP';
}
