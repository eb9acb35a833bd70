/**
 * Requests and limits as the numbers that the runtime gives to the kernel, and the quality-of-service class. Pure.
 * Source: pkg/kubelet/cm helpers, pkg/kubelet/qos policy and pkg/apis/core/v1/helper/qos of v1.33 (behaviour).
 */
import type { Container, EphemeralContainer, Pod } from '../api/generated/types.ts';
import { parseQuantity, quantityMilli, quantityValue } from '../machinery/quantity.ts';
import type { ContainerConfig } from '../runtime/runtime.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const QUOTA_PERIOD_MICROS = 100_000;
const MIN_QUOTA_MICROS = 1000;
const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
/** Pods of at least this priority are critical: the kernel kills them last. */
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;
const GUARANTEED_OOM_SCORE = -997;
const BEST_EFFORT_OOM_SCORE = 1000;

const milli = (text: string | undefined): number =>
  Number(quantityMilli(parseQuantity(text ?? '0') ?? { nano: 0n, format: 'DecimalSI' }));
const whole = (text: string | undefined): number =>
  Number(quantityValue(parseQuantity(text ?? '0') ?? { nano: 0n, format: 'DecimalSI' }));

/** From the status where the API server set it, else of the spec. */
export function qosClass(pod: Pod): QosClass {
  const recorded = pod.status?.qosClass;
  if (recorded === 'Guaranteed' || recorded === 'Burstable' || recorded === 'BestEffort') return recorded;
  let any = false;
  let guaranteed = true;
  for (const { resources } of [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]) {
    for (const name of ['cpu', 'memory']) {
      const limit = milli(resources?.limits?.[name]);
      const request = resources?.requests?.[name] === undefined ? limit : milli(resources.requests[name]);
      if (limit > 0 || request > 0) any = true;
      if (limit === 0 || request !== limit) guaranteed = false;
    }
  }
  if (!any) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

/** The kernel's out-of-memory preference, -997 (last) to 1000 (first). */
export function oomScoreAdjust(
  pod: Pod,
  container: Container | EphemeralContainer,
  memoryCapacityBytes: number,
): number {
  if ((pod.spec?.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY) return GUARANTEED_OOM_SCORE;
  const qos = qosClass(pod);
  if (qos === 'Guaranteed') return GUARANTEED_OOM_SCORE;
  if (qos === 'BestEffort') return BEST_EFFORT_OOM_SCORE;
  const request = whole(container.resources?.requests?.['memory'] ?? container.resources?.limits?.['memory']);
  const score = 1000 - Math.floor((1000 * request) / memoryCapacityBytes);
  if (score < 1000 + GUARANTEED_OOM_SCORE) return 1000 + GUARANTEED_OOM_SCORE;
  return score === BEST_EFFORT_OOM_SCORE ? score - 1 : score;
}

export function containerResources(
  pod: Pod,
  container: Container | EphemeralContainer,
  memoryCapacityBytes: number,
): ContainerConfig['resources'] {
  const cpuLimit = milli(container.resources?.limits?.['cpu']);
  const cpuRequest = milli(container.resources?.requests?.['cpu'] ?? container.resources?.limits?.['cpu']);
  const memoryLimit = whole(container.resources?.limits?.['memory']);
  return {
    cpuShares: Math.min(MAX_SHARES, Math.max(MIN_SHARES, Math.floor((cpuRequest * 1024) / 1000))),
    ...(cpuLimit === 0
      ? {}
      : {
          cpuPeriod: QUOTA_PERIOD_MICROS,
          cpuQuota: Math.max(MIN_QUOTA_MICROS, Math.floor((cpuLimit * QUOTA_PERIOD_MICROS) / 1000)),
        }),
    ...(memoryLimit === 0 ? {} : { memoryLimitBytes: memoryLimit }),
    oomScoreAdj: oomScoreAdjust(pod, container, memoryCapacityBytes),
  };
}
