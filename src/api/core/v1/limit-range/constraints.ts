/**
 * Checks Pods and claims against the minima, maxima and ratios of a LimitRange.
 * Source: the plugin LimitRanger of v1.33 (behavior and wording), except that quantities are compared exactly; the specification of defer
 * containers, by which entries without requests and limits are ignored.
 */

import { compareQuantities, formatQuantity, parseQuantity, type Quantity } from '../../../../machinery/quantity.ts';
import type {
  LimitRange,
  LimitRangeItem,
  PersistentVolumeClaim,
  Pod,
  ResourceRequirements,
} from '../../../generated/types.ts';
import { specOf } from '../pod/containers.ts';
import {
  countedDefers,
  namedLimits,
  namedRequests,
  type ResourceQuantities,
  resourceQuantities,
} from '../pod/resources.ts';

interface Amounts {
  requests: ResourceQuantities;
  limits: ResourceQuantities;
}

/** Returns how the Pod violates the LimitRange; undefined if the Pod complies. */
export function podViolation(pod: Pod, { spec }: LimitRange): string | undefined {
  const { containers, initContainers = [] } = specOf(pod);
  const all = [...containers, ...initContainers, ...countedDefers(specOf(pod))];
  const errors = (spec?.limits ?? []).flatMap((item) => {
    if (item.type === 'Container') return all.flatMap(({ resources }) => itemErrors(item, amountsOf(resources)));
    if (item.type === 'Pod') return itemErrors(item, { requests: namedRequests(pod), limits: namedLimits(pod) });
    return [];
  });
  return joined(errors);
}

/** Returns how the claim violates the LimitRange; undefined if the claim complies. The limits of the claim are ignored. */
export function claimViolation(claim: PersistentVolumeClaim, { spec }: LimitRange): string | undefined {
  const requests = resourceQuantities(claim.spec?.resources?.requests);
  const errors = (spec?.limits ?? []).flatMap((item) => {
    if (item.type !== 'PersistentVolumeClaim') return [];
    return [
      ...each(item.min, (name, min) => belowMinimum(item, name, min, { requests, limits: new Map() })),
      ...each(item.max, (name, max) => requestAboveMaximum(item, name, max, requests)),
    ];
  });
  return joined(errors);
}

const amountsOf = (resources: ResourceRequirements | undefined): Amounts => ({
  requests: resourceQuantities(resources?.requests),
  limits: resourceQuantities(resources?.limits),
});

const itemErrors = (item: LimitRangeItem, amounts: Amounts): string[] => [
  ...each(item.min, (name, min) => belowMinimum(item, name, min, amounts)),
  ...each(item.max, (name, max) => aboveMaximum(item, name, max, amounts)),
  ...each(item.maxLimitRequestRatio, (name, ratio) => aboveRatio(item, name, ratio, amounts)),
];

const each = (
  list: Record<string, string> | undefined,
  check: (name: string, enforced: Quantity) => string | undefined,
): string[] =>
  Object.entries(list ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, text]) => {
      const enforced = parseQuantity(text);
      return (enforced && check(name, enforced)) ?? [];
    });

/** Formats the errors like Go's aggregated errors: each text once, in brackets if there are several. */
function joined(errors: readonly string[]): string | undefined {
  const texts = [...new Set(errors)];
  return texts.length > 1 ? `[${texts.join(', ')}]` : texts[0];
}

type Compared = Pick<LimitRangeItem, 'type'>;

function belowMinimum({ type }: Compared, name: string, min: Quantity, { requests, limits }: Amounts) {
  const minimum = `minimum ${name} usage per ${type} is ${formatQuantity(min)}`;
  const request = requests.get(name);
  const limit = limits.get(name);
  if (request === undefined) return `${minimum}.  No request is specified`;
  if (compareQuantities(request, min) < 0) return `${minimum}, but request is ${formatQuantity(request)}`;
  if (limit !== undefined && compareQuantities(limit, min) < 0)
    return `${minimum}, but limit is ${formatQuantity(limit)}`;
  return undefined;
}

function aboveMaximum({ type }: Compared, name: string, max: Quantity, { requests, limits }: Amounts) {
  const maximum = `maximum ${name} usage per ${type} is ${formatQuantity(max)}`;
  const request = requests.get(name);
  const limit = limits.get(name);
  if (limit === undefined) return `${maximum}.  No limit is specified`;
  if (compareQuantities(limit, max) > 0) return `${maximum}, but limit is ${formatQuantity(limit)}`;
  if (request !== undefined && compareQuantities(request, max) > 0)
    return `${maximum}, but request is ${formatQuantity(request)}`;
  return undefined;
}

function requestAboveMaximum({ type }: Compared, name: string, max: Quantity, requests: ResourceQuantities) {
  const maximum = `maximum ${name} usage per ${type} is ${formatQuantity(max)}`;
  const request = requests.get(name);
  if (request === undefined) return `${maximum}.  No request is specified`;
  if (compareQuantities(request, max) > 0) return `${maximum}, but request is ${formatQuantity(request)}`;
  return undefined;
}

const NANO = 1_000_000_000n;

function aboveRatio({ type }: Compared, name: string, ratio: Quantity, { requests, limits }: Amounts) {
  const maximum = `${name} max limit to request ratio per ${type} is ${formatQuantity(ratio)}`;
  const request = requests.get(name)?.nano ?? 0n;
  const limit = limits.get(name)?.nano ?? 0n;
  if (request === 0n) return `${maximum}, but no request is specified or request is 0`;
  if (limit === 0n) return `${maximum}, but no limit is specified or limit is 0`;
  if (limit * NANO <= ratio.nano * request) return undefined;
  return `${maximum}, but provided ratio is ${(Number(limit) / Number(request)).toFixed(6)}`;
}
