/**
 * The status of a quota, computed from the objects of its namespace.
 *
 * Invariant: a name is in `used` only if the objects were counted after `hard` in the status contained the name. Until then, writes that
 * the name limits are rejected, so that no object is missing in the count.
 * Source: pkg/controller/resourcequota and k8s.io/apiserver/pkg/quota/v1 of v1.33 (the counted amounts).
 */
import type { KubeObject } from '../../../../../machinery/meta.ts';
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  quantityOrZero,
  zeroQuantity,
} from '../../../../../machinery/quantity.ts';
import type { Millis } from '../../../../../machinery/time.ts';
import type { ResourceQuota, ResourceQuotaStatus } from '../../../../generated/types.ts';
import { inScopes } from './charge.ts';
import type { Evaluator, Usage } from './evaluator.ts';

export interface Counted {
  evaluator: Evaluator;
  objects: readonly KubeObject[];
}

/**
 * Returns the status that must be written before the objects are counted, because `spec.hard` has names that `status.hard` lacks; undefined
 * if there are none.
 */
export function announcedStatus({ spec, status }: ResourceQuota): ResourceQuotaStatus | undefined {
  const hard = spec?.hard ?? {};
  if (Object.keys(hard).every((name) => Object.hasOwn(status?.hard ?? {}, name))) return undefined;
  const used = Object.entries(status?.used ?? {}).filter(([name]) => Object.hasOwn(status?.hard ?? {}, name));
  return { hard, used: Object.fromEntries(used.filter(([name]) => Object.hasOwn(hard, name))) };
}

export const limits = ({ spec, status }: ResourceQuota, { measures }: Evaluator): boolean =>
  Object.keys(spec?.hard ?? {}).some(measures) || Object.keys(status?.hard ?? {}).some(measures);

export interface Recount {
  /** Undefined if the status of the quota is correct. */
  status: ResourceQuotaStatus | undefined;
  /** When the usage changes without a change of an object; undefined if it does not. */
  changesAt: Millis | undefined;
}

/** `counted` must contain all resources that the quota limits. */
export function recount(quota: ResourceQuota, counted: readonly Counted[], now: Millis): Recount {
  const hard = quota.spec?.hard ?? {};
  const sums: Usage = new Map();
  const known = (name: string): boolean =>
    name.startsWith('count/') || counted.some(({ evaluator }) => evaluator.measures(name));
  for (const name of Object.keys(hard)) if (known(name)) sums.set(name, zeroQuantity);
  let changesAt: Millis | undefined;
  for (const { evaluator, objects } of counted) {
    for (const object of objects) {
      if (!inScopes(quota, evaluator, object)) continue;
      for (const [name, amount] of evaluator.usage(object, now)) {
        const sum = sums.get(name);
        if (sum !== undefined) sums.set(name, addQuantities(sum, amount));
      }
      const change = evaluator.changesAt?.(object, now);
      if (change !== undefined) changesAt = Math.min(change, changesAt ?? change);
    }
  }
  const used = Object.fromEntries([...sums].map(([name, sum]) => [name, formatQuantity(sum)]));
  const isCurrent = sameAmounts(quota.status?.hard, hard) && sameAmounts(quota.status?.used, used);
  return { status: isCurrent ? undefined : { hard, used }, changesAt };
}

function sameAmounts(a: Record<string, string> | undefined, b: Record<string, string>): boolean {
  if (a === undefined || Object.keys(a).length !== Object.keys(b).length) return false;
  return Object.entries(b).every(
    ([name, text]) => Object.hasOwn(a, name) && compareQuantities(quantityOrZero(a[name]), quantityOrZero(text)) === 0,
  );
}

/** Whether an update of a quota requires a new count. Charged writes do not, because they only increase the amounts in `used`. */
export function needsRecount(quota: ResourceQuota, old: ResourceQuota): boolean {
  if (!sameAmounts(quota.status?.hard, quota.spec?.hard ?? {})) return true;
  if (JSON.stringify(quota.spec) !== JSON.stringify(old.spec)) return true;
  const used = quota.status?.used ?? {};
  return Object.entries(old.status?.used ?? {}).some(
    ([name, text]) => compareQuantities(quantityOrZero(used[name]), quantityOrZero(text)) < 0,
  );
}

export function changesUsage(evaluator: Evaluator, object: KubeObject, old: KubeObject, now: Millis): boolean {
  const before = evaluator.usage(old, now);
  const after = evaluator.usage(object, now);
  if (before.size !== after.size || evaluator.changesAt?.(object, now) !== evaluator.changesAt?.(old, now)) return true;
  if (SCOPES.some((scope) => evaluator.inScope?.(object, scope) !== evaluator.inScope?.(old, scope))) return true;
  return [...after].some(([name, amount]) => compareQuantities(amount, before.get(name) ?? zeroQuantity) !== 0);
}

/** The scopes that an object can enter or leave by an update. */
const SCOPES = ['Terminating'].map((scopeName) => ({ scopeName, operator: 'Exists' }));
