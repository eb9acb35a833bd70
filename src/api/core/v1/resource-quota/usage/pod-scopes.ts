/** Matches Pods with the scopes of quotas. Source: podMatchesScopeFunc in pkg/quota/v1/evaluator/core/pods.go of v1.33. */
import type { Pod, PodAffinityTerm, ScopedResourceSelectorRequirement } from '../../../../generated/types.ts';
import { qosClass } from '../../pod/status/qos.ts';

export function podInScope(pod: Pod, { scopeName, operator, values = [] }: ScopedResourceSelectorRequirement): boolean {
  switch (scopeName) {
    case 'Terminating':
      return hasDeadline(pod);
    case 'NotTerminating':
      return !hasDeadline(pod);
    case 'BestEffort':
      return qosClass(pod) === 'BestEffort';
    case 'NotBestEffort':
      return qosClass(pod) !== 'BestEffort';
    case 'PriorityClass':
      return matchesClass(pod.spec?.priorityClassName ?? '', operator, values);
    case 'CrossNamespacePodAffinity':
      return affinityTerms(pod).some(isCrossNamespace);
    default:
      return false;
  }
}

const hasDeadline = ({ spec }: Pod): boolean => (spec?.activeDeadlineSeconds ?? -1) >= 0;

function matchesClass(name: string, operator: string, values: readonly string[]): boolean {
  if (operator === 'In') return name !== '' && values.includes(name);
  if (operator === 'NotIn') return name === '' || !values.includes(name);
  return (operator === 'Exists') === (name !== '');
}

function affinityTerms({ spec }: Pod): PodAffinityTerm[] {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {};
  return [podAffinity, podAntiAffinity].flatMap((affinity) => [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((weighted) => weighted.podAffinityTerm),
  ]);
}

const isCrossNamespace = ({ namespaces = [], namespaceSelector }: PodAffinityTerm): boolean =>
  namespaces.length > 0 || namespaceSelector !== undefined;
