/** The functions are pure. Source: pkg/kubelet/cm helpers, pkg/kubelet/kuberuntime and pkg/kubelet/qos policy of v1.33 (behavior). */
import { isSidecar } from '../../api/core/v1/pod/containers.ts';
import {
  countedDefers,
  effectiveRequests,
  type ResourceQuantities,
  summedLimits,
} from '../../api/core/v1/pod/resources.ts';
import { type QosClass, qosClass as qosClassOfSpec } from '../../api/core/v1/pod/status/qos.ts';
import type { Container, EphemeralContainer, Pod } from '../../api/generated/types.ts';
import { parseQuantity, type Quantity, quantityMilli, quantityValue } from '../../machinery/quantity.ts';
import { type CgroupLimits, QUOTA_PERIOD_MICROS } from '../../platform/control-groups/cgroups.ts';
import type { ContainerConfig } from '../../runtime/runtime.ts';
import type { CgroupFacts } from '../node-facts.ts';
import { hugepagesName } from './hugepages.ts';

/** The kernel's limits. */
const MIN_QUOTA_MICROS = 1000;
export const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
/** If memory runs out, processes of Pods with this priority class are killed last, like processes of Guaranteed Pods. */
const NODE_CRITICAL_CLASS = 'system-node-critical';
const GUARANTEED_OOM_SCORE = -997;
const BEST_EFFORT_OOM_SCORE = 1000;

const NOTHING: Quantity = { nano: 0n, format: 'DecimalSI' };
const milli = (text: string | undefined): number => Number(quantityMilli(parseQuantity(text ?? '0') ?? NOTHING));
const whole = (text: string | undefined): number => Number(quantityValue(parseQuantity(text ?? '0') ?? NOTHING));

/** Prefers the class that the API server has set in the Pod's status. */
export function qosClass(pod: Pod): QosClass {
  const recorded = pod.status?.qosClass;
  return recorded === 'Guaranteed' || recorded === 'Burstable' || recorded === 'BestEffort'
    ? recorded
    : qosClassOfSpec(pod);
}

export const cpuShares = (milliCpu: number): number =>
  Math.min(MAX_SHARES, Math.max(MIN_SHARES, Math.floor((milliCpu * 1024) / 1000)));

/** Returns microseconds per QUOTA_PERIOD_MICROS. */
const cpuQuota = (milliCpu: number): number =>
  Math.max(MIN_QUOTA_MICROS, Math.floor((milliCpu * QUOTA_PERIOD_MICROS) / 1000));

/** Returns oom_score_adj, from -997 (killed last) to 1000 (killed first). */
export function oomScoreAdjust(
  pod: Pod,
  container: Container | EphemeralContainer,
  memoryCapacityBytes: number,
): number {
  if (pod.spec?.priorityClassName === NODE_CRITICAL_CLASS) return GUARANTEED_OOM_SCORE;
  const qos = qosClass(pod);
  if (qos === 'Guaranteed') return GUARANTEED_OOM_SCORE;
  if (qos === 'BestEffort') return BEST_EFFORT_OOM_SCORE;
  const scoreOf = (request: number): number => 1000 - Math.floor((1000 * request) / memoryCapacityBytes);
  let score = scoreOf(memoryRequest(container));
  // Like upstream, limit a sidecar's score to the highest score of the app containers that the sidecar serves.
  if (pod.spec?.initContainers?.some((init) => init.name === container.name && isSidecar(init)))
    score = Math.min(score, scoreOf(Math.min(...pod.spec.containers.map(memoryRequest))));
  if (score < 1000 + GUARANTEED_OOM_SCORE) return 1000 + GUARANTEED_OOM_SCORE;
  return score === BEST_EFFORT_OOM_SCORE ? score - 1 : score;
}

const memoryRequest = ({ resources }: Container | EphemeralContainer): number =>
  whole(resources?.requests?.['memory'] ?? resources?.limits?.['memory']);

/** With `cgroups`, every huge page size of the machine is limited, to zero if the container has no limit for this size. */
export function containerResources(
  pod: Pod,
  container: Container | EphemeralContainer,
  memoryCapacityBytes: number,
  cgroups?: CgroupFacts,
): ContainerConfig['resources'] {
  const { limits, requests } = container.resources ?? {};
  const cpuLimit = milli(limits?.['cpu']);
  const memoryLimit = whole(limits?.['memory']);
  const hugepageSizes = cgroups?.hugepageSizes ?? [];
  return {
    cpuShares: cpuShares(milli(requests?.['cpu'] ?? limits?.['cpu'])),
    ...(cpuLimit === 0 ? {} : { cpuPeriod: QUOTA_PERIOD_MICROS, cpuQuota: cpuQuota(cpuLimit) }),
    ...(memoryLimit === 0 ? {} : { memoryLimitBytes: memoryLimit }),
    oomScoreAdj: oomScoreAdjust(pod, container, memoryCapacityBytes),
    ...(hugepageSizes.length === 0
      ? {}
      : {
          hugepageBytes: Object.fromEntries(hugepageSizes.map((size) => [size, whole(limits?.[hugepagesName(size)])])),
        }),
    ...(cgroups === undefined ? {} : memoryBehavior(memoryLimit, cgroups)),
  };
}

/**
 * Disables swap, if the kernel can limit it, and on cgroup v2 makes an OOM kill end all processes of the container. On cgroup v1, swap is
 * only disabled for a container with a memory limit. Source: v1.33, NoSwap and singleProcessOOMKill.
 */
function memoryBehavior(
  memoryLimit: number,
  { version, limitsSwap }: CgroupFacts,
): Pick<ContainerConfig['resources'], 'unified' | 'memorySwapLimitBytes'> {
  if (version === 2) return { unified: { 'memory.oom.group': '1', ...(limitsSwap ? { 'memory.swap.max': '0' } : {}) } };
  // On cgroup v1, this limit applies to the sum of memory and swap.
  return limitsSwap && memoryLimit > 0 ? { memorySwapLimitBytes: memoryLimit } : {};
}

/**
 * Returns the limits of the whole Pod: CPU shares and huge pages from its requests, CPU time and memory if every container has a limit, and
 * `pidsLimit` if it is positive.
 */
export function podLimits(pod: Pod, hugepageSizes: readonly string[], pidsLimit: number): CgroupLimits {
  const requests = effectiveRequests(pod);
  const limits = summedLimits(pod);
  const bestEffort = qosClass(pod) === 'BestEffort';
  const cpu = everyLimitAboveZero(pod, 'cpu') ? amount(limits, 'cpu', quantityMilli) : 0;
  const memory = everyLimitAboveZero(pod, 'memory') ? amount(limits, 'memory', quantityValue) : 0;
  return {
    cpuShares: bestEffort ? MIN_SHARES : cpuShares(podCpuRequest(pod)),
    ...(cpu === 0 ? {} : { cpuQuotaMicros: cpuQuota(cpu) }),
    ...(memory === 0 ? {} : { memoryBytes: memory }),
    ...(pidsLimit > 0 ? { pids: pidsLimit } : {}),
    hugepageBytes: Object.fromEntries(
      hugepageSizes.map((size) => [size, amount(requests, hugepagesName(size), quantityValue)]),
    ),
  };
}

/** Returns thousandths of a CPU. */
export const podCpuRequest = (pod: Pod): number => amount(effectiveRequests(pod), 'cpu', quantityMilli);

const amount = (quantities: ResourceQuantities, name: string, unit: (quantity: Quantity) => bigint): number =>
  Number(unit(quantities.get(name) ?? NOTHING));

/**
 * A limit of zero means no limit. Defer containers whose requests and limits are all zero are ignored, since they use the resources of the
 * other containers.
 */
function everyLimitAboveZero({ spec }: Pod, name: string): boolean {
  const { initContainers = [], containers = [] } = spec ?? {};
  return [...initContainers, ...containers, ...countedDefers(spec ?? {})].every(
    ({ resources }) => milli(resources?.limits?.[name]) > 0,
  );
}
