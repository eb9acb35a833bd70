/**
 * Validates and computes amounts that are a number or a percentage, such as maxUnavailable.
 * Source: ValidatePositiveIntOrPercent and IsNotMoreThan100Percent of pkg/apis/apps/validation of v1.33 (behavior and wording).
 */
import { nonNegative } from './rules.ts';

const PERCENT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%', or '93%', regex used for validation is '[0-9]+%')";

const isPercent = (value: number | string): value is string => typeof value === 'string' && /^[0-9]+%$/.test(value);

export function intOrPercentErrors(value: number | string): string[] {
  if (typeof value === 'number') return nonNegative(value);
  return isPercent(value) ? [] : [PERCENT];
}

export const percentLimitErrors = (value: number | string): string[] =>
  isPercent(value) && Number(value.slice(0, -1)) > 100 ? ['must not be greater than 100%'] : [];

/** Returns the number, or the number in a text such as `25%` or `25`; 0 for any other text, as upstream does. */
export function amountOf(value: number | string): number {
  if (typeof value === 'number') return value;
  if (isPercent(value)) return Number(value.slice(0, -1));
  return /^[+-]?[0-9]+$/.test(value) ? Number(value) : 0;
}

/**
 * Returns the number, or the percentage of `total`, rounded up or down; 0 if the amount is absent. Source: GetScaledValueFromIntOrPercent
 * of k8s.io/apimachinery/pkg/util/intstr of v1.33.
 */
export function resolveAmount(value: number | string | undefined, total: number, round: 'up' | 'down'): number {
  if (typeof value !== 'string') return value ?? 0;
  const part = (amountOf(value) * total) / 100;
  return round === 'up' ? Math.ceil(part) : Math.floor(part);
}
