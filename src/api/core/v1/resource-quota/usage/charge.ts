/**
 * Decides whether a write exceeds the quotas of its namespace, and how much each quota is charged.
 *
 * A quota limits the resources that `hard` in its status names: the controller copies `spec.hard` to the status when it begins to count the
 * usage.
 * Source: CheckRequest in k8s.io/apiserver/pkg/admission/plugin/resourcequota of v1.33 (behavior and wording).
 */
import type { KubeObject } from '../../../../../machinery/meta.ts';
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  quantityOrZero,
  subtractQuantities,
  zeroQuantity,
} from '../../../../../machinery/quantity.ts';
import type { Millis } from '../../../../../machinery/time.ts';
import type { ResourceQuota, ScopedResourceSelectorRequirement } from '../../../../generated/types.ts';
import type { Evaluator, Usage } from './evaluator.ts';

export interface ChargedWrite {
  evaluator: Evaluator;
  object: KubeObject;
  /** Undefined for a create. */
  old: KubeObject | undefined;
  now: Millis;
}

/** `refused`: why the write is rejected. `charged`: the quotas whose usage the write increases, with their new status. */
export type ChargeResult = { refused: string } | { charged: ResourceQuota[] };

export function charge(quotas: readonly ResourceQuota[], write: ChargedWrite): ChargeResult {
  const { evaluator, object } = write;
  const applying = quotas.filter((quota) => applies(quota, evaluator, object));
  for (const quota of applying) {
    const refused = unmetDemand(quota, evaluator, object);
    if (refused !== undefined) return { refused };
  }
  const charged: ResourceQuota[] = [];
  for (const quota of applying) {
    const requested = requestedFrom(quota, write);
    if (requested.size === 0) continue;
    const refused = excess(quota, requested);
    if (refused !== undefined) return { refused };
    charged.push(withUsage(quota, requested));
  }
  return { charged };
}

export const scopesOf = ({ spec }: ResourceQuota): ScopedResourceSelectorRequirement[] => [
  ...(spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' })),
  ...(spec?.scopeSelector?.matchExpressions ?? []),
];

export const inScopes = (quota: ResourceQuota, { inScope }: Evaluator, object: KubeObject): boolean =>
  scopesOf(quota).every((scope) => inScope?.(object, scope) === true);

const hardOf = ({ status }: ResourceQuota): Record<string, string> => status?.hard ?? {};
const usedOf = ({ status }: ResourceQuota): Record<string, string> => status?.used ?? {};

const applies = (quota: ResourceQuota, evaluator: Evaluator, object: KubeObject): boolean =>
  Object.keys(hardOf(quota)).some(evaluator.measures) && inScopes(quota, evaluator, object);

function unmetDemand(quota: ResourceQuota, evaluator: Evaluator, object: KubeObject): string | undefined {
  const { name } = quota.metadata;
  const measured = Object.keys(hardOf(quota)).filter(evaluator.measures).sort();
  const missing = evaluator.missing?.(object, measured);
  if (missing !== undefined) return `failed quota: ${name}: ${missing}`;
  const used = usedOf(quota);
  if (measured.every((resource) => Object.hasOwn(used, resource))) return undefined;
  return `status unknown for quota: ${name}, resources: ${measured.join(',')}`;
}

function requestedFrom(quota: ResourceQuota, { evaluator, object, old, now }: ChargedWrite): Usage {
  const hard = hardOf(quota);
  const before = old !== undefined && applies(quota, evaluator, old) ? evaluator.usage(old, now) : undefined;
  const increases = [...evaluator.usage(object, now)]
    .filter(([name]) => Object.hasOwn(hard, name))
    .map(([name, amount]) => [name, subtractQuantities(amount, before?.get(name) ?? zeroQuantity)] as const);
  return new Map(increases.filter(([, { nano }]) => nano > 0n));
}

function excess(quota: ResourceQuota, requested: Usage): string | undefined {
  const hard = hardOf(quota);
  const used = usedOf(quota);
  const exceeded = [...requested]
    .filter(([name, amount]) => {
      const sum = addQuantities(quantityOrZero(used[name]), amount);
      return compareQuantities(sum, quantityOrZero(hard[name])) > 0;
    })
    .sort(([a], [b]) => (a < b ? -1 : 1));
  if (exceeded.length === 0) return undefined;
  const list = (amountOf: (name: string) => string): string =>
    exceeded.map(([name]) => `${name}=${amountOf(name)}`).join(',');
  const amounts = [
    `requested: ${list((name) => formatQuantity(requested.get(name) ?? zeroQuantity))}`,
    `used: ${list((name) => formatQuantity(quantityOrZero(used[name])))}`,
    `limited: ${list((name) => formatQuantity(quantityOrZero(hard[name])))}`,
  ];
  return `exceeded quota: ${quota.metadata.name}, ${amounts.join(', ')}`;
}

function withUsage(quota: ResourceQuota, requested: Usage): ResourceQuota {
  const used = { ...usedOf(quota) };
  for (const [name, amount] of requested)
    used[name] = formatQuantity(addQuantities(quantityOrZero(used[name]), amount));
  return { ...quota, status: { ...quota.status, used } };
}
