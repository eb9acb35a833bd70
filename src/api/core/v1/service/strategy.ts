/**
 * The changes that the API server makes to a Service on each write.
 * Source: pkg/registry/core/service/strategy.go and pkg/registry/core/service/storage of v1.33 (behavior).
 */
import { jsonEqual } from '../../../../machinery/json-value.ts';
import type { Service, ServiceSpec } from '../../../generated/types.ts';
import { isExternallyAccessible } from './defaults.ts';

const same = (a: unknown, b: unknown): boolean => jsonEqual(a ?? null, b ?? null);

/** A client whose types lack clusterIPs sets only clusterIP. */
export function prepareServiceForCreate(service: Service): void {
  const { spec } = service;
  if (spec?.clusterIP && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [spec.clusterIP];
}

export function prepareServiceForUpdate(service: Service, old: Service): void {
  const spec = service.spec ?? {};
  const oldSpec = old.spec ?? {};
  keepAllocated(spec, oldSpec);
  followClusterIp(spec, oldSpec);
  dropSecondFamily(spec, oldSpec);
  dropFieldsOfOldType(spec, oldSpec);
  // Replace the status instead of changing it, because the old Service shares it.
  const { status } = service;
  if (spec.type !== 'LoadBalancer' && status?.loadBalancer) service.status = { ...status, loadBalancer: {} };
}

export const needsClusterIp = ({ type }: ServiceSpec): boolean => type !== 'ExternalName';
const hasNodePorts = ({ type }: ServiceSpec): boolean => type === 'NodePort' || type === 'LoadBalancer';
export const needsHealthCheck = ({ type, externalTrafficPolicy }: ServiceSpec): boolean =>
  type === 'LoadBalancer' && externalTrafficPolicy === 'Local';

/** Copies allocated values that the client omits, so that the manifest of a Service can be sent again. */
function keepAllocated(spec: ServiceSpec, old: ServiceSpec): void {
  if (needsClusterIp(old) && needsClusterIp(spec)) {
    if (!spec.clusterIP && old.clusterIP) spec.clusterIP = old.clusterIP;
    if ((spec.clusterIPs ?? []).length === 0 && old.clusterIPs !== undefined) spec.clusterIPs = [...old.clusterIPs];
  }
  if (hasNodePorts(old) && hasNodePorts(spec)) keepNodePorts(spec, old);
  if (needsHealthCheck(old) && needsHealthCheck(spec) && old.healthCheckNodePort) {
    spec.healthCheckNodePort ||= old.healthCheckNodePort;
  }
}

/** Copies the node port of the old port with the same name, unless another port has it now. */
function keepNodePorts(spec: ServiceSpec, old: ServiceSpec): void {
  const used = new Set((spec.ports ?? []).map(({ nodePort }) => nodePort || undefined));
  const byName = new Map((old.ports ?? []).map(({ name = '', nodePort }) => [name, nodePort || undefined]));
  for (const port of spec.ports ?? []) {
    const kept = byName.get(port.name ?? '');
    if (!port.nodePort && kept !== undefined && !used.has(kept)) port.nodePort = kept;
  }
}

/** Supports clients whose types lack clusterIPs: if an update changes or clears only clusterIP, sets clusterIPs accordingly. */
function followClusterIp(spec: ServiceSpec, old: ServiceSpec): void {
  if (spec.clusterIP === old.clusterIP || !same(spec.clusterIPs, old.clusterIPs)) return;
  if (spec.clusterIP) spec.clusterIPs = [spec.clusterIP];
  else delete spec.clusterIPs;
}

function dropSecondFamily(spec: ServiceSpec, old: ServiceSpec): void {
  if ((spec.ipFamilyPolicy ?? old.ipFamilyPolicy) !== 'SingleStack') return;
  if (same(spec.clusterIPs, old.clusterIPs) && (spec.clusterIPs ?? []).length > 1) {
    spec.clusterIPs = spec.clusterIPs?.slice(0, 1);
  }
  if (same(spec.ipFamilies, old.ipFamilies) && (spec.ipFamilies ?? []).length > 1) {
    spec.ipFamilies = spec.ipFamilies?.slice(0, 1);
  }
}

/** Drops fields that only the old type of the Service uses. Fields that the client changed are kept, so that validation rejects them. */
function dropFieldsOfOldType(spec: ServiceSpec, old: ServiceSpec): void {
  const drop = (...fields: (keyof ServiceSpec)[]): void => {
    for (const field of fields) if (same(spec[field], old[field])) delete spec[field];
  };
  if (needsClusterIp(old) && !needsClusterIp(spec)) {
    if (spec.clusterIP === old.clusterIP) drop('clusterIPs', 'clusterIP');
    drop('ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy');
  }
  if (hasNodePorts(old) && !hasNodePorts(spec)) {
    const oldPorts = new Set((old.ports ?? []).map((port) => port.nodePort));
    const isNew = (spec.ports ?? []).some(({ nodePort }) => nodePort && !oldPorts.has(nodePort));
    if (!isNew) for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (needsHealthCheck(old) && !needsHealthCheck(spec)) drop('healthCheckNodePort');
  if (isExternallyAccessible(old) && !isExternallyAccessible(spec)) drop('externalTrafficPolicy');
  if (old.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    drop('allocateLoadBalancerNodePorts', 'loadBalancerClass');
  }
}
