/** The functions are pure. Source: Admit of pkg/kubelet/eviction, v1.33. */
import { qosClass } from '../../api/core/v1/pod/status/qos.ts';
import type { Pod } from '../../api/generated/types.ts';
import { isCritical } from '../../scheduling/critical-pods.ts';
import type { Refusal } from '../../scheduling/node-admission.ts';
import type { PressureCondition } from './thresholds.ts';

export function pressureRefusal(
  pod: Pod,
  isStatic: boolean,
  conditions: ReadonlySet<PressureCondition>,
): Refusal | undefined {
  if (conditions.size === 0 || isCritical(pod, isStatic)) return undefined;
  const onlyMemory = conditions.size === 1 && conditions.has('MemoryPressure');
  if (onlyMemory && (qosClass(pod) !== 'BestEffort' || toleratesMemoryPressure(pod))) return undefined;
  return { reason: 'Evicted', message: `The node had condition: [${[...conditions].join(' ')}]. ` };
}

const toleratesMemoryPressure = ({ spec }: Pod): boolean =>
  (spec?.tolerations ?? []).some(
    ({ key, operator, value, effect }) =>
      (effect === undefined || effect === '' || effect === 'NoSchedule') &&
      (operator === 'Exists'
        ? key === undefined || key === '' || key === 'node.kubernetes.io/memory-pressure'
        : key === 'node.kubernetes.io/memory-pressure' && (value ?? '') === ''),
  );
