/** Resource requests and limits. Source: validation of v1.33 (rules and wording). */
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFoundField,
  required,
} from '../../../../machinery/field-error.ts';
import { qualifiedNameErrors } from '../../../../machinery/names.ts';
import {
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  quantityMilli,
  quantityValue,
  zeroQuantity,
} from '../../../../machinery/quantity.ts';
import type { ResourceRequirements } from '../../../generated/types.ts';
import { nameErrors } from './validate-values.ts';

const standardNames = new Set(['cpu', 'memory', 'ephemeral-storage']);
const isHugePages = (name: string): boolean => name.startsWith('hugepages-');
/** Names without a prefix, and those under kubernetes.io, are Kubernetes's own. */
const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/');
const isExtended = (name: string): boolean =>
  !isNative(name) && !name.startsWith('requests.') && qualifiedNameErrors(`requests.${name}`).length === 0;
/** An amount that the kernel can lend out more than once. */
const isOvercommitable = (name: string): boolean => isNative(name) && !isHugePages(name);

function validateResourceName(name: string, path: string): FieldError[] {
  const errors = nameErrors(name, path, qualifiedNameErrors);
  if (errors.length > 0) return errors;
  if (!name.includes('/')) {
    return standardNames.has(name) || isHugePages(name)
      ? []
      : [invalid(path, name, 'must be a standard resource for containers')];
  }
  return isNative(name) || isExtended(name)
    ? []
    : [invalid(path, name, "doesn't follow extended resource name standard")];
}

function validateAmount(name: string, text: string, path: string): FieldError[] {
  const quantity = parseQuantity(String(text));
  if (quantity === undefined) {
    return [
      invalid(
        path,
        text,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      ),
    ];
  }
  const errors: FieldError[] = [];
  if (compareQuantities(quantity, zeroQuantity) < 0) {
    errors.push(invalid(path, formatQuantity(quantity), 'must be greater than or equal to 0'));
  }
  if (isExtended(name) && quantityMilli(quantity) % 1000n !== 0n) {
    errors.push(invalid(path, formatQuantity(quantity), 'must be an integer'));
  }
  return errors;
}

/** Huge pages are lent out whole. The size is in the name: hugepages-2Mi. */
function validateHugePages(name: string, text: string, path: string): FieldError[] {
  const quantity = parseQuantity(String(text));
  if (!isHugePages(name) || quantity === undefined) return [];
  const size = parseQuantity(name.slice('hugepages-'.length));
  const bytes = size === undefined || quantityMilli(size) % 1000n !== 0n ? 0n : quantityValue(size);
  if (bytes > 0n && quantityValue(quantity) % bytes === 0n) return [];
  const shown = formatQuantity(quantity);
  return [invalid(path, shown, `${shown} is not positive integer multiple of ${name}`)];
}

export const validateResourceList = (list: Record<string, string> | undefined, path: string): FieldError[] =>
  Object.entries(list ?? {}).flatMap(([name, text]) => [
    ...validateResourceName(name, `${path}[${name}]`),
    ...validateAmount(name, text, `${path}[${name}]`),
  ]);

export function validateResources(
  resources: ResourceRequirements | undefined,
  claimNames: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const limits = resources?.limits ?? {};
  const requests = resources?.requests ?? {};
  const errors = Object.entries(limits).flatMap(([name, text]) => [
    ...validateResourceList({ [name]: text }, `${path}.limits`),
    ...validateHugePages(name, text, `${path}.limits[${name}]`),
  ]);
  for (const [name, text] of Object.entries(requests)) {
    errors.push(...validateResourceName(name, `${path}.requests[${name}]`));
    errors.push(...validateAmount(name, text, `${path}.requests[${name}]`));
    errors.push(...validateHugePages(name, text, `${path}.requests[${name}]`));
    errors.push(...validateAgainstLimit(name, parseQuantity(String(text)), limits[name], path));
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.some((name) => name === 'cpu' || name === 'memory')) {
    errors.push(forbidden(path, 'HugePages require cpu or memory'));
  }
  errors.push(...validateClaims(resources, claimNames, `${path}.claims`));
  return errors;
}

function validateAgainstLimit(
  name: string,
  request: Quantity | undefined,
  limitText: string | undefined,
  path: string,
): FieldError[] {
  if (request === undefined) return [];
  if (limitText === undefined) {
    return isOvercommitable(name)
      ? []
      : [required(`${path}.limits`, 'Limit must be set for non overcommitable resources')];
  }
  const limit = parseQuantity(String(limitText));
  if (limit === undefined) return [];
  const order = compareQuantities(request, limit);
  const shown = formatQuantity(request);
  if (!isOvercommitable(name) && order !== 0) {
    return [invalid(`${path}.requests`, shown, `must be equal to ${name} limit of ${formatQuantity(limit)}`)];
  }
  return order > 0
    ? [invalid(`${path}.requests`, shown, `must be less than or equal to ${name} limit of ${formatQuantity(limit)}`)]
    : [];
}

function validateClaims(
  resources: ResourceRequirements | undefined,
  claimNames: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const seen = new Set<string>();
  return (resources?.claims ?? []).flatMap(({ name, request }, index) => {
    const at = `${path}[${index}]`;
    if (!name) return [required(`${at}.name`)];
    const key = request ? `${name}/${request}` : name;
    if (seen.has(key)) return [duplicate(at, key)];
    seen.add(key);
    return claimNames.has(name) ? [] : [notFoundField(at, name)];
  });
}
