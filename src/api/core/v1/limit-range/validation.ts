/** Validation of LimitRanges. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  required,
} from '../../../../machinery/field-error.ts';
import { qualifiedNameErrors } from '../../../../machinery/names.ts';
import { compareQuantities, formatQuantity, parseQuantity, type Quantity } from '../../../../machinery/quantity.ts';
import type { LimitRange, LimitRangeItem } from '../../../generated/types.ts';
import { isOvercommitable, validateResourceName } from '../pod/validation/validate-resources.ts';
import { validateAnyResourceName } from '../resource-quota/resource-names.ts';

const TYPES = new Set(['Pod', 'Container', 'PersistentVolumeClaim']);
const LISTS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;
const ONE = 1_000_000_000n;

function validateType(type: string, path: string): FieldError[] {
  const errors = qualifiedNameErrors(type).map((text) => invalid(path, type, text));
  return errors.length > 0 || type.includes('/') || TYPES.has(type)
    ? errors
    : [invalid(path, type, 'must be a standard limit type or fully qualified')];
}

function validateNames(item: LimitRangeItem, list: (typeof LISTS)[number], path: string): FieldError[] {
  const names = Object.keys(item[list] ?? {});
  if (item.type === 'Pod' && list.startsWith('default'))
    return names.length > 0 ? [forbidden(`${path}.${list}`, "may not be specified when `type` is 'Pod'")] : [];
  const check = item.type === 'Pod' || item.type === 'Container' ? validateResourceName : validateAnyResourceName;
  return names.flatMap((name) => check(name, `${path}.${list}[${name}]`));
}

type Amounts = Record<(typeof LISTS)[number], Quantity | undefined>;

/**
 * The amount in the first list must not be greater than the amount in the second list. Each list is followed by its name in errors. The
 * last two elements are the list in the path of the error, and the list whose amount the error shows.
 */
const ORDERS = [
  ['min', 'min value', 'max', 'max value', 'min', 'min'],
  ['min', 'min value', 'defaultRequest', 'default request value', 'defaultRequest', 'defaultRequest'],
  ['defaultRequest', 'default request value', 'max', 'max value', 'defaultRequest', 'defaultRequest'],
  ['defaultRequest', 'default request value', 'default', 'default limit value', 'defaultRequest', 'defaultRequest'],
  ['min', 'min value', 'default', 'default value', 'default', 'min'],
  ['default', 'default value', 'max', 'max value', 'default', 'max'],
] as const;

function validateOrder(amounts: Amounts, name: string, path: string): FieldError[] {
  return ORDERS.flatMap(([low, lowText, high, highText, at, shown]) => {
    const [least, most] = [amounts[low], amounts[high]];
    if (least === undefined || most === undefined || compareQuantities(least, most) <= 0) return [];
    const text = `${lowText} ${formatQuantity(least)} is greater than ${highText} ${formatQuantity(most)}`;
    return [invalid(`${path}.${at}[${name}]`, formatQuantity(amounts[shown] as Quantity), text)];
  });
}

function validateRatio({ maxLimitRequestRatio: ratio, min, max }: Amounts, name: string, path: string): FieldError[] {
  if (ratio === undefined) return [];
  const at = `${path}.maxLimitRequestRatio[${name}]`;
  const shown = formatQuantity(ratio);
  const errors = ratio.nano < ONE ? [invalid(at, shown, `ratio ${shown} is less than 1`)] : [];
  if (min === undefined || max === undefined || min.nano === 0n) return errors;
  const limit = Number(max.nano) / Number(min.nano);
  if (Number(ratio.nano) / Number(ONE) > limit)
    errors.push(invalid(at, shown, `ratio ${shown} is greater than max/min = ${limit.toFixed(6)}`));
  return errors;
}

function validateEqualDefaults(amounts: Amounts, name: string, path: string): FieldError[] {
  const { default: limit, defaultRequest: request } = amounts;
  if (isOvercommitable(name) || limit === undefined || request === undefined) return [];
  if (compareQuantities(limit, request) === 0) return [];
  const text = `default value ${formatQuantity(limit)} must equal to defaultRequest value ${formatQuantity(request)} in ${name}`;
  return [invalid(`${path}.defaultRequest[${name}]`, formatQuantity(request), text)];
}

function validateAmounts(item: LimitRangeItem, path: string): FieldError[] {
  const lists = LISTS.filter((list) => item.type !== 'Pod' || !list.startsWith('default'));
  const names = new Set(lists.flatMap((list) => Object.keys(item[list] ?? {})));
  return [...names].flatMap((name) => {
    const entries = LISTS.map((list) => {
      const text = lists.includes(list) ? item[list]?.[name] : undefined;
      return [list, text === undefined ? undefined : parseQuantity(String(text))];
    });
    const amounts = Object.fromEntries(entries) as Amounts;
    return allErrors(
      validateOrder(amounts, name, path),
      validateRatio(amounts, name, path),
      validateEqualDefaults(amounts, name, path),
    );
  });
}

function validateClaimItem({ type, min, max }: LimitRangeItem, path: string): FieldError[] {
  if (type !== 'PersistentVolumeClaim' || min?.['storage'] !== undefined || max?.['storage'] !== undefined) return [];
  const text = 'either minimum or maximum storage value is required, but neither was provided';
  return [required(`${path}.limits`, text)];
}

export function validateLimitRange({ spec }: LimitRange): FieldError[] {
  const seen = new Set<string>();
  return (spec?.limits ?? []).flatMap((item, index) => {
    const path = `spec.limits[${index}]`;
    const isRepeated = seen.has(item.type);
    seen.add(item.type);
    return allErrors(
      validateType(item.type, `${path}.type`),
      isRepeated ? [duplicate(`${path}.type`, item.type)] : [],
      ...LISTS.slice(0, 4).map((list) => validateNames(item, list, path)),
      validateClaimItem(item, path),
      validateNames(item, 'maxLimitRequestRatio', path),
      validateAmounts(item, path),
    );
  });
}
