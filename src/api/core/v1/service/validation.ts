/** Validation of Services. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { addressErrors } from '../../../../machinery/ip.ts';
import { specialIpErrors } from '../../../../machinery/ip-address.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateLabels } from '../../../../machinery/object-meta.ts';
import type { Service, ServiceSpec } from '../../../generated/types.ts';
import { validateClusterIps, validateClusterIpsUpdate, validateFamilyPolicy } from './validate-cluster-ips.ts';
import { validateLoadBalancer, validateLoadBalancerClassUpdate } from './validate-load-balancer.ts';
import { isHeadless, validatePorts } from './validate-ports.ts';
import { validateHealthCheckUpdate, validateTraffic } from './validate-traffic.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const AFFINITIES = ['ClientIP', 'None'];
const MAX_AFFINITY_SECONDS = 86_400;
/** The kubelet's port. */
const NODE_AGENT_PORT = 10_250;

function validateType(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const headless = isHeadless(spec);
  if (spec.type === 'LoadBalancer') {
    spec.ports?.forEach(({ port }, index) => {
      if (port !== NODE_AGENT_PORT) return;
      const text = `may not expose port ${NODE_AGENT_PORT} externally since it is used by kubelet`;
      errors.push(invalid(`spec.ports[${index}]`, port, text));
    });
  }
  if (headless && (spec.type === 'LoadBalancer' || spec.type === 'NodePort')) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`));
  }
  if (spec.type !== 'ExternalName') return errors;
  for (const field of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
    if ((spec[field] ?? []).length > 0) {
      errors.push(forbidden(`spec.${field}`, 'may not be set for ExternalName services'));
    }
  }
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  if (name === '') errors.push(required('spec.externalName'));
  else errors.push(...dns1123SubdomainErrors(name).map((text) => invalid('spec.externalName', name, text)));
  return errors;
}

function validateAffinity({ sessionAffinity, sessionAffinityConfig }: ServiceSpec): FieldError[] {
  if (!sessionAffinity) return [required('spec.sessionAffinity')];
  if (!AFFINITIES.includes(sessionAffinity)) {
    return [notSupported('spec.sessionAffinity', sessionAffinity, AFFINITIES)];
  }
  if (sessionAffinity === 'None') return [];
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 0;
  if (seconds > 0 && seconds <= MAX_AFFINITY_SECONDS) return [];
  const text = `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`;
  return [invalid('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds, text)];
}

/** An update may keep addresses that the old Service has. */
const validateExternalIps = ({ externalIPs = [] }: ServiceSpec, old: ServiceSpec | undefined): FieldError[] =>
  externalIPs.flatMap((ip, index) => {
    if (old?.externalIPs?.includes(ip)) return [];
    const errors = addressErrors(ip);
    return (errors.length > 0 ? errors : specialIpErrors(ip)).map((text) =>
      invalid(`spec.externalIPs[${index}]`, ip, text),
    );
  });

/** The annotation for topology-aware routing, and the older annotation with the same meaning. */
export const TOPOLOGY_MODE = 'service.kubernetes.io/topology-mode';
export const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';

function validateTopology({ annotations }: Service['metadata']): FieldError[] {
  const [mode, hints] = [annotations?.[TOPOLOGY_MODE], annotations?.[TOPOLOGY_HINTS]];
  if (mode === undefined || hints === undefined || mode === hints) return [];
  const text = `must match annotations[${TOPOLOGY_HINTS}] when both are specified`;
  return [invalid(`metadata.annotations[${TOPOLOGY_MODE}]`, mode, text)];
}

export function validateService(service: Service, old?: Service): FieldError[] {
  const spec = service.spec ?? {};
  const errors: FieldError[] = validateTopology(service.metadata);
  if (old !== undefined) errors.push(...validateServiceUpdate(spec, old.spec ?? {}));
  if ((spec.ports ?? []).length === 0 && !isHeadless(spec) && spec.type !== 'ExternalName') {
    errors.push(required('spec.ports'));
  }
  errors.push(...validateType(spec), ...validatePorts(spec));
  errors.push(...validateLabels(spec.selector, 'spec.selector'));
  errors.push(...validateAffinity(spec), ...validateClusterIps(spec), ...validateFamilyPolicy(spec, old?.spec));
  errors.push(...validateExternalIps(spec, old?.spec));
  if (!spec.type) errors.push(required('spec.type'));
  else if (!TYPES.includes(spec.type)) errors.push(notSupported('spec.type', spec.type, TYPES));
  return allErrors(errors, validateLoadBalancer(service, old), validateTraffic(spec));
}

const validateServiceUpdate = (spec: ServiceSpec, old: ServiceSpec): FieldError[] =>
  allErrors(
    validateClusterIpsUpdate(spec, old),
    validateLoadBalancerClassUpdate(spec, old),
    validateHealthCheckUpdate(spec, old),
  );
