/**
 * Conversion of HorizontalPodAutoscalers between autoscaling/v1 and v2. Annotations contain the parts that v1 lacks: metrics besides the
 * CPU usage, the behavior, and all metrics and conditions of the status. An annotation that cannot be decoded is dropped.
 * Source: pkg/apis/autoscaling/v1/conversion.go and pkg/apis/autoscaling/annotations.go of v1.33 (names, formats and behavior).
 */
import { defined } from '../../../../machinery/drop-undefined.ts';
import type { ObjectMeta } from '../../../../machinery/meta.ts';
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerStatus,
  V2HorizontalPodAutoscaler,
  V2HorizontalPodAutoscalerStatus,
  V2MetricSpec,
  V2MetricStatus,
} from '../../../generated/types.ts';
import { cpuUtilization } from '../../v2/horizontal-pod-autoscaler/defaults.ts';
import {
  asV1Source,
  asV1Status,
  behaviorText,
  readBehavior,
  readConditions,
  readSources,
  readStatuses,
} from './annotations.ts';

const PREFIX = 'autoscaling.alpha.kubernetes.io/';
const METRICS = `${PREFIX}metrics`;
const BEHAVIOR = `${PREFIX}behavior`;
const CURRENT_METRICS = `${PREFIX}current-metrics`;
const CONDITIONS = `${PREFIX}conditions`;
const ANNOTATIONS = [METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS];

function withAnnotations(metadata: ObjectMeta, added: Record<string, string | undefined>): ObjectMeta {
  const { annotations = {}, ...rest } = metadata;
  const kept = Object.entries({
    ...annotations,
    ...Object.fromEntries(ANNOTATIONS.map((key) => [key, undefined])),
    ...added,
  });
  const present = kept.filter((entry): entry is [string, string] => entry[1] !== undefined);
  return present.length === 0 ? rest : { ...rest, annotations: Object.fromEntries(present) };
}

const jsonOf = (list: readonly unknown[] | undefined): string | undefined =>
  list === undefined || list.length === 0 ? undefined : JSON.stringify(list);

const isCpu = ({ type, resource }: V2MetricSpec | V2MetricStatus): boolean =>
  type === 'Resource' && resource?.name === 'cpu';
const targetPercent = ({ resource }: V2MetricSpec): number | undefined => resource?.target.averageUtilization;
const currentPercent = ({ resource }: V2MetricStatus): number | undefined => resource?.current.averageUtilization;

function fromV2Status(status: V2HorizontalPodAutoscalerStatus): HorizontalPodAutoscalerStatus {
  const { observedGeneration, lastScaleTime, currentReplicas = 0, desiredReplicas = 0, currentMetrics = [] } = status;
  const ofCpu = currentMetrics.findLast((metric) => isCpu(metric) && currentPercent(metric) !== undefined);
  return {
    ...defined({ observedGeneration, lastScaleTime }),
    currentReplicas,
    desiredReplicas,
    ...defined({ currentCPUUtilizationPercentage: ofCpu && currentPercent(ofCpu) }),
  };
}

/**
 * As in upstream, the field for the CPU has the percentage of the first CPU metric, and the percentages of further CPU metrics are dropped.
 */
export function fromV2({ metadata, spec, status }: V2HorizontalPodAutoscaler): HorizontalPodAutoscaler {
  const { metrics = [], behavior } = spec ?? {};
  const others = metrics.filter((metric) => !isCpu(metric) || targetPercent(metric) === undefined);
  const object: HorizontalPodAutoscaler = {
    kind: 'HorizontalPodAutoscaler',
    apiVersion: 'autoscaling/v1',
    metadata: withAnnotations(metadata, {
      [METRICS]: jsonOf(others.map(asV1Source)),
      [BEHAVIOR]: behavior && behaviorText(behavior),
      [CURRENT_METRICS]: jsonOf(status?.currentMetrics?.map(asV1Status)),
      [CONDITIONS]: jsonOf(status?.conditions),
    }),
  };
  if (spec !== undefined) {
    const { scaleTargetRef, minReplicas, maxReplicas } = spec;
    const ofCpu = metrics.find(isCpu);
    const percent = { targetCPUUtilizationPercentage: ofCpu && targetPercent(ofCpu) };
    object.spec = { scaleTargetRef, maxReplicas, ...defined({ minReplicas, ...percent }) };
  }
  if (status !== undefined) object.status = fromV2Status(status);
  return object;
}

function toV2Status(
  status: HorizontalPodAutoscalerStatus,
  annotations: Readonly<Record<string, string>>,
): V2HorizontalPodAutoscalerStatus {
  const { observedGeneration, lastScaleTime, currentReplicas, desiredReplicas = 0 } = status;
  const percent = status.currentCPUUtilizationPercentage;
  const ofCpu: V2MetricStatus[] =
    percent === undefined
      ? []
      : [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: percent } } }];
  return {
    ...defined({ observedGeneration, lastScaleTime, currentReplicas: currentReplicas || undefined }),
    desiredReplicas,
    currentMetrics: readStatuses(annotations[CURRENT_METRICS]) ?? ofCpu,
    ...defined({ conditions: readConditions(annotations[CONDITIONS]) }),
  };
}

export function toV2({ metadata, spec, status }: HorizontalPodAutoscaler): V2HorizontalPodAutoscaler {
  const { annotations = {} } = metadata;
  const {
    scaleTargetRef = { kind: '', name: '' },
    maxReplicas = 0,
    minReplicas,
    targetCPUUtilizationPercentage,
  } = spec ?? {};
  const ofCpu = targetCPUUtilizationPercentage === undefined ? [] : [cpuUtilization(targetCPUUtilizationPercentage)];
  return {
    kind: 'HorizontalPodAutoscaler',
    apiVersion: 'autoscaling/v2',
    metadata: withAnnotations(metadata, {}),
    spec: {
      scaleTargetRef: { ...scaleTargetRef },
      maxReplicas,
      metrics: [...(readSources(annotations[METRICS]) ?? []), ...ofCpu],
      ...defined({ minReplicas, behavior: readBehavior(annotations[BEHAVIOR]) }),
    },
    ...(status === undefined ? {} : { status: toV2Status(status, annotations) }),
  };
}
