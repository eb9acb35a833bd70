/**
 * Validates the names of resources in ResourceQuotas and LimitRanges, and the amounts in ResourceQuotas.
 * Source: pkg/apis/core/helper and pkg/apis/core/validation of v1.33 (behavior and wording).
 */
import { type FieldError, invalid } from '../../../../machinery/field-error.ts';
import { qualifiedNameErrors } from '../../../../machinery/names.ts';
import { parseQuantity, quantityMilli } from '../../../../machinery/quantity.ts';
import { isExtended } from '../pod/validation/validate-resources.ts';

/** The resources whose amounts are numbers of objects or ports. */
const counts = [
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
];
const amounts = ['cpu', 'memory', 'ephemeral-storage'];
const quotaNames = new Set([
  ...counts,
  ...amounts,
  ...amounts.map((name) => `requests.${name}`),
  ...amounts.map((name) => `limits.${name}`),
  'requests.storage',
]);
const countNames = new Set(counts);

/** Whether a quota may limit the name, such as `limits.cpu` or `requests.hugepages-2Mi`. */
export const isQuotaName = (name: string): boolean => quotaNames.has(name) || /^(requests\.)?hugepages-/.test(name);

export function validateAnyResourceName(name: string, path: string): FieldError[] {
  const errors = qualifiedNameErrors(name).map((text) => invalid(path, name, text));
  if (errors.length > 0 || name.includes('/') || name === 'storage' || isQuotaName(name)) return errors;
  return [invalid(path, name, 'must be a standard resource type or fully qualified')];
}

function validateQuotaAmount(name: string, text: string, path: string): FieldError[] {
  const quantity = parseQuantity(String(text));
  if (quantity === undefined) return [];
  const errors = quantity.nano < 0n ? [invalid(path, text, 'must be greater than or equal to 0')] : [];
  const isInteger = countNames.has(name) || isExtended(name);
  if (isInteger && quantityMilli(quantity) % 1000n !== 0n) errors.push(invalid(path, text, 'must be an integer'));
  return errors;
}

export const validateQuotaList = (list: Record<string, string> | undefined, path: string): FieldError[] =>
  Object.entries(list ?? {}).flatMap(([name, text]) => {
    const at = `${path}[${name}]`;
    const errors = validateAnyResourceName(name, at);
    if (!name.includes('/') && !isQuotaName(name))
      errors.push(invalid(at, name, 'must be a standard resource for quota'));
    return errors.concat(validateQuotaAmount(name, text, at));
  });
