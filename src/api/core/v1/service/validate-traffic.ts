/** Validation of how traffic reaches the endpoints of a Service. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import { type FieldError, forbidden, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import { portNumberErrors } from '../../../../machinery/names.ts';
import { IMMUTABLE_TEXT } from '../../../../machinery/object-meta.ts';
import type { ServiceSpec } from '../../../generated/types.ts';
import { isExternallyAccessible } from './defaults.ts';
import { needsHealthCheck } from './strategy.ts';

const POLICIES = ['Cluster', 'Local'];
const HEALTH_CHECK = 'spec.healthCheckNodePort';

/** The port for health checks may be absent, because ports are allocated later. */
export function validateTraffic(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { externalTrafficPolicy, internalTrafficPolicy, healthCheckNodePort = 0, trafficDistribution } = spec;
  const field = 'spec.externalTrafficPolicy';
  if (!isExternallyAccessible(spec)) {
    if (externalTrafficPolicy) {
      errors.push(invalid(field, externalTrafficPolicy, 'may only be set for externally-accessible services'));
    }
  } else if (!externalTrafficPolicy) {
    errors.push(required(field));
  } else if (!POLICIES.includes(externalTrafficPolicy)) {
    errors.push(notSupported(field, externalTrafficPolicy, POLICIES));
  }
  if (healthCheckNodePort !== 0) {
    const texts = needsHealthCheck(spec)
      ? portNumberErrors(healthCheckNodePort)
      : ["may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"];
    errors.push(...texts.map((text) => invalid(HEALTH_CHECK, healthCheckNodePort, text)));
  }
  if (internalTrafficPolicy && !POLICIES.includes(internalTrafficPolicy)) {
    errors.push(notSupported('spec.internalTrafficPolicy', internalTrafficPolicy, POLICIES));
  }
  if (trafficDistribution !== undefined && trafficDistribution !== 'PreferClose') {
    errors.push(notSupported('spec.trafficDistribution', trafficDistribution, ['PreferClose']));
  }
  return errors;
}

export const validateHealthCheckUpdate = (spec: ServiceSpec, old: ServiceSpec): FieldError[] =>
  needsHealthCheck(spec) && needsHealthCheck(old) && spec.healthCheckNodePort !== old.healthCheckNodePort
    ? [forbidden(HEALTH_CHECK, IMMUTABLE_TEXT)]
    : [];
