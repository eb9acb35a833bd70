/** The defaults of HorizontalPodAutoscalers. Source: pkg/apis/autoscaling/v2 of v1.33 (behavior). */
import type { V2HorizontalPodAutoscaler, V2HPAScalingRules, V2MetricSpec } from '../../../generated/types.ts';

const CPU_UTILIZATION_PERCENT = 80;
const PERIOD_SECONDS = 15;

/** `percent`: the usage in relation to the requests of the Pods. */
export const cpuUtilization = (percent: number): V2MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: percent } },
});

const allPods = () => ({ type: 'Percent', value: 100, periodSeconds: PERIOD_SECONDS });
const scaleUpRules = (): V2HPAScalingRules => ({
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [{ type: 'Pods', value: 4, periodSeconds: PERIOD_SECONDS }, allPods()],
});
const scaleDownRules = (): V2HPAScalingRules => ({ selectPolicy: 'Max', policies: [allPods()] });

export function defaultAutoscaler(autoscaler: V2HorizontalPodAutoscaler): void {
  autoscaler.spec ??= { scaleTargetRef: { kind: '', name: '' }, maxReplicas: 0 };
  const { spec } = autoscaler;
  spec.minReplicas ??= 1;
  if ((spec.metrics ?? []).length === 0) spec.metrics = [cpuUtilization(CPU_UTILIZATION_PERCENT)];
  if (spec.behavior === undefined) return;
  spec.behavior.scaleUp = { ...scaleUpRules(), ...spec.behavior.scaleUp };
  spec.behavior.scaleDown = { ...scaleDownRules(), ...spec.behavior.scaleDown };
}
