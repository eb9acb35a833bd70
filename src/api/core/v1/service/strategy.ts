/**
 * The changes that the API server makes to a Service on each write.
 * Source: pkg/registry/core/service/strategy.go and pkg/registry/core/service/storage of v1.33 (behavior).
 */
import { jsonEqual } from '../../../../machinery/json-value.ts';
import type { Service, ServiceSpec } from '../../../generated/types.ts';
import { isExternallyAccessible } from './defaults.ts';

const same = (a: unknown, b: unknown): boolean => jsonEqual(a ?? null, b ?? null);

/** Resets the status, and sets clusterIPs if an older client only set clusterIP. */
export function prepareServiceForCreate(service: Service): void {
  const { spec } = service;
  if (spec?.clusterIP && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [spec.clusterIP];
}

export function prepareServiceForUpdate(service: Service, old: Service): void {
  const spec = service.spec ?? {};
  const oldSpec = old.spec ?? {};
  followClusterIp(spec, oldSpec);
  dropFieldsOfOldType(spec, oldSpec);
}

/**
 * Supports clients whose types lack clusterIPs. If an update changes or clears only clusterIP, sets clusterIPs accordingly; if an update
 * omits clusterIPs and keeps clusterIP, restores clusterIPs.
 */
function followClusterIp(spec: ServiceSpec, old: ServiceSpec): void {
  if (spec.clusterIP === old.clusterIP) {
    if ((spec.clusterIPs ?? []).length === 0 && old.clusterIPs !== undefined) spec.clusterIPs = [...old.clusterIPs];
  } else if (same(spec.clusterIPs, old.clusterIPs)) {
    if (spec.clusterIP) spec.clusterIPs = [spec.clusterIP];
    else delete spec.clusterIPs;
  }
}

const needsClusterIp = ({ type }: ServiceSpec): boolean => type !== 'ExternalName';
const needsNodePort = ({ type, allocateLoadBalancerNodePorts = true }: ServiceSpec): boolean =>
  type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts);

/**
 * Drops fields that the old type of the Service used and the new type does not. Fields that the client changed are kept, so that
 * validation rejects them.
 */
function dropFieldsOfOldType(spec: ServiceSpec, old: ServiceSpec): void {
  const drop = (...fields: (keyof ServiceSpec)[]): void => {
    for (const field of fields) if (same(spec[field], old[field])) delete spec[field];
  };
  if (needsClusterIp(old) && !needsClusterIp(spec)) {
    drop('clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy');
  }
  if (needsNodePort(old) && !needsNodePort(spec)) {
    const oldPorts = new Set((old.ports ?? []).map((port) => port.nodePort));
    for (const port of spec.ports ?? []) if (oldPorts.has(port.nodePort)) delete port.nodePort;
  }
  if (isExternallyAccessible(old) && !isExternallyAccessible(spec)) drop('externalTrafficPolicy');
  const wasBalanced = old.type === 'LoadBalancer';
  if (wasBalanced && spec.type !== 'LoadBalancer') {
    drop('allocateLoadBalancerNodePorts', 'loadBalancerClass', 'healthCheckNodePort');
  }
}
