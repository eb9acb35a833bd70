/** Warnings about valid Services. Source: pkg/api/service/warnings.go of v1.33 (behavior and wording). */
import { addressWarnings, rangeWarnings } from '../../../../machinery/ip.ts';
import type { Service, ServiceSpec } from '../../../generated/types.ts';
import { isHeadless } from './validate-ports.ts';
import { TOPOLOGY_HINTS, TOPOLOGY_MODE } from './validation.ts';

function ignoredFields(spec: ServiceSpec): string[] {
  const { type, externalIPs = [], externalName, loadBalancerIP, sessionAffinity } = spec;
  const warnings: string[] = [];
  if (type === 'ClusterIP' && isHeadless(spec)) {
    const ignored = { loadBalancerIP, externalIPs: externalIPs.length > 0 };
    for (const [name, isSet] of Object.entries(ignored))
      if (isSet) warnings.push(`spec.${name} is ignored for headless services`);
    if (sessionAffinity !== 'None') warnings.push('spec.SessionAffinity is ignored for headless services');
  }
  if (type === 'ExternalName' && externalIPs.length > 0) {
    warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  }
  if (type !== 'ExternalName' && externalName) {
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  }
  return warnings;
}

export function serviceWarnings({ metadata, spec = {} }: Service): string[] {
  const { clusterIPs = [], externalIPs = [], loadBalancerIP, loadBalancerSourceRanges: ranges = [] } = spec;
  const ofEach = (values: readonly string[], name: string, warningsOf: typeof addressWarnings): string[] =>
    values.flatMap((value, index) => warningsOf(`spec.${name}[${index}]`, value));
  return [
    ...(metadata.annotations?.[TOPOLOGY_HINTS] === undefined
      ? []
      : [`annotation ${TOPOLOGY_HINTS} is deprecated, please use ${TOPOLOGY_MODE} instead`]),
    ...(isHeadless(spec) ? [] : ofEach(clusterIPs, 'clusterIPs', addressWarnings)),
    ...ofEach(externalIPs, 'externalIPs', addressWarnings),
    ...(loadBalancerIP ? addressWarnings('spec.loadBalancerIP', loadBalancerIP) : []),
    ...ofEach(ranges, 'loadBalancerSourceRanges', rangeWarnings),
    ...ignoredFields(spec),
  ];
}
