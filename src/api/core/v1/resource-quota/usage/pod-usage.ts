/**
 * The usage of Pods. A Pod that has ended, or whose grace period has passed twice, counts only as an object.
 * Source: pkg/quota/v1/evaluator/core/pods.go of v1.33 (behavior and wording); the specification of defer containers (effective resources;
 * entries without resources need not specify values).
 */
import type { Quantity } from '../../../../../machinery/quantity.ts';
import { type Millis, parseTime } from '../../../../../machinery/time.ts';
import type { Pod } from '../../../../generated/types.ts';
import { specOf } from '../../pod/containers.ts';
import {
  countedDefers,
  effectiveRequests,
  type ResourceQuantities,
  resourceQuantities,
  summedLimits,
} from '../../pod/resources.ts';
import { hasEnded } from '../../pod/status/final-phase.ts';
import { isExtended, isNative } from '../../pod/validation/validate-resources.ts';
import { type Evaluator, quantityOf, type Usage } from './evaluator.ts';
import { podInScope } from './pod-scopes.ts';

const COUNT = 'count/pods';
const AMOUNTS = ['cpu', 'memory', 'ephemeral-storage'] as const;
const measured = new Set([COUNT, 'pods', ...AMOUNTS.flatMap((name) => [name, `requests.${name}`, `limits.${name}`])]);
/** The names for which each container of a Pod must specify a value if a quota limits them. */
const demanded = new Set(['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory']);

export const podEvaluator: Evaluator<Pod> = {
  measures: (name) =>
    measured.has(name) || /^(requests\.)?hugepages-/.test(name) || (name.startsWith('requests.') && !isNative(name)),
  usage(pod, now) {
    const usage: Usage = isCharged(pod, now) ? named(effectiveRequests(pod), summedLimits(pod)) : new Map();
    return usage.set(COUNT, quantityOf(1));
  },
  inScope: podInScope,
  missing: missingValues,
  changesAt: (pod, now) => (isCharged(pod, now) ? endOfCharge(pod) : undefined),
};

const isCharged = (pod: Pod, now: Millis): boolean => !hasEnded(pod) && now <= (endOfCharge(pod) ?? now);

/** Returns when the Pod is no longer charged: a grace period after its deletionTimestamp. */
function endOfCharge({ metadata }: Pod): Millis | undefined {
  const { deletionGracePeriodSeconds } = metadata;
  const deletion = parseTime(metadata.deletionTimestamp);
  return deletion === undefined || deletionGracePeriodSeconds === undefined
    ? undefined
    : deletion + deletionGracePeriodSeconds * 1000;
}

function named(requests: ResourceQuantities, limits: ResourceQuantities): Usage {
  const usage: Usage = new Map([['pods', quantityOf(1)]]);
  const add = (name: string, amount: Quantity | undefined): void => {
    if (amount !== undefined) usage.set(name, amount);
  };
  for (const name of AMOUNTS) {
    add(name, requests.get(name));
    add(`requests.${name}`, requests.get(name));
    add(`limits.${name}`, limits.get(name));
  }
  for (const [name, amount] of requests) {
    const isHugePages = name.startsWith('hugepages-');
    if (isHugePages) add(name, amount);
    if (isHugePages || isExtended(name)) add(`requests.${name}`, amount);
  }
  return usage;
}

function missingValues(pod: Pod, names: readonly string[]): string | undefined {
  const spec = specOf(pod);
  const wanted = names.filter((name) => demanded.has(name)).sort();
  const containers = [...spec.containers, ...(spec.initContainers ?? []), ...countedDefers(spec)].map(
    ({ name, resources }) => ({
      name,
      values: named(resourceQuantities(resources?.requests), resourceQuantities(resources?.limits)),
    }),
  );
  const texts = wanted.flatMap((name) => {
    const without = containers.filter(({ values }) => !values.has(name)).map((container) => container.name);
    return without.length === 0 ? [] : [`${name} for: ${[...new Set(without)].sort().join(',')}`];
  });
  return texts.length === 0 ? undefined : `must specify ${texts.join('; ')}`;
}
