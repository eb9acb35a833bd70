/** Validates resource requests and limits. Source: validation of v1.33 (rules and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFoundField,
  required,
  tooMany,
} from '../../../../../machinery/field-error.ts';
import { qualifiedNameErrors } from '../../../../../machinery/names.ts';
import {
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityMilli,
  quantityValue,
  zeroQuantity,
} from '../../../../../machinery/quantity.ts';
import type { ResourceRequirements } from '../../../../generated/types.ts';
import { nameErrors } from './validate-values.ts';

/**
 * The maximum number of resources in a list, far more than a machine has. Longer lists are rejected before their entries are validated, to
 * bound the cost of validation. Upstream limits only the size of the object.
 */
const MAX_NAMES = 1000;
const standardNames = new Set(['cpu', 'memory', 'ephemeral-storage']);
const isHugePages = (name: string): boolean => name.startsWith('hugepages-');
export const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/');
const MAX_PREFIX_CHARACTERS = 253;
/** Whether a quota can name the resource as `requests.<name>`. */
const hasQuotaName = (name: string): boolean =>
  !name.startsWith('requests.') && `requests.${name}`.indexOf('/') <= MAX_PREFIX_CHARACTERS;
export const isExtended = (name: string): boolean =>
  !isNative(name) && qualifiedNameErrors(name).length === 0 && hasQuotaName(name);
export const isOvercommitable = (name: string): boolean => isNative(name) && !isHugePages(name);

export function validateResourceName(name: string, path: string): FieldError[] {
  const errors = nameErrors(name, path, qualifiedNameErrors);
  if (errors.length > 0) return errors;
  if (!name.includes('/')) {
    return standardNames.has(name) || isHugePages(name)
      ? []
      : [invalid(path, name, 'must be a standard resource for containers')];
  }
  return isNative(name) || hasQuotaName(name)
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
  if (quantityMilli(quantity) % 1000n !== 0n && isExtended(name)) {
    errors.push(invalid(path, formatQuantity(quantity), 'must be an integer'));
  }
  return errors;
}

/** The page size is part of the resource's name (hugepages-2Mi). */
function validateHugePages(name: string, text: string, path: string): FieldError[] {
  const quantity = isHugePages(name) ? parseQuantity(String(text)) : undefined;
  if (quantity === undefined) return [];
  const size = parseQuantity(name.slice('hugepages-'.length));
  const bytes = size === undefined || quantityMilli(size) % 1000n !== 0n ? 0n : quantityValue(size);
  if (bytes > 0n && quantityValue(quantity) % bytes === 0n) return [];
  const shown = formatQuantity(quantity);
  return [invalid(path, shown, `${shown} is not positive integer multiple of ${name}`)];
}

function countErrors(list: Record<string, string> | undefined, path: string): FieldError[] {
  const count = Object.keys(list ?? {}).length;
  return count > MAX_NAMES ? [tooMany(path, count, MAX_NAMES)] : [];
}

export function validateResourceList(list: Record<string, string> | undefined, path: string): FieldError[] {
  const errors = countErrors(list, path);
  if (errors.length > 0) return errors;
  return Object.entries(list ?? {}).flatMap(([name, text]) =>
    allErrors(validateResourceName(name, `${path}[${name}]`), validateAmount(name, text, `${path}[${name}]`)),
  );
}

/**
 * For speed, if all limits are valid, a name in the limits is not validated again in the requests, and a request with the text of its
 * limit is not validated: the defaults copy limits to requests.
 */
export function validateResources(
  resources: ResourceRequirements | undefined,
  claimNames: ReadonlySet<string>,
  path: string,
): FieldError[] {
  if (resources === undefined) return [];
  const { limits = {}, requests = {} } = resources;
  const errors = allErrors(countErrors(limits, `${path}.limits`), countErrors(requests, `${path}.requests`));
  if (errors.length > 0) return errors;
  for (const name of Object.keys(limits)) {
    const text = limits[name] as string;
    const at = `${path}.limits[${name}]`;
    errors.push(
      ...validateResourceName(name, at),
      ...validateAmount(name, text, at),
      ...validateHugePages(name, text, at),
    );
  }
  const areLimitsValid = errors.length === 0;
  for (const name of Object.keys(requests)) {
    const text = requests[name] as string;
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    const isNameValid = areLimitsValid && limit !== undefined;
    if (isNameValid && text === limit) continue;
    const at = `${path}.requests[${name}]`;
    if (!isNameValid) errors.push(...validateResourceName(name, at));
    errors.push(...validateAmount(name, text, at), ...validateHugePages(name, text, at));
    errors.push(...validateAgainstLimit(name, text, limit, path));
  }
  const names = Object.keys(limits).concat(Object.keys(requests));
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory'))
    errors.push(forbidden(path, 'HugePages require cpu or memory'));
  errors.push(...validateClaims(resources, claimNames, `${path}.claims`));
  return errors;
}

function validateAgainstLimit(name: string, text: string, limitText: string | undefined, path: string): FieldError[] {
  if (text === limitText) return [];
  const request = parseQuantity(String(text));
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

function validateClaims({ claims }: ResourceRequirements, claimNames: ReadonlySet<string>, path: string): FieldError[] {
  if (claims === undefined) return [];
  const seen = new Set<string>();
  return claims.flatMap(({ name, request }, index) => {
    const at = `${path}[${index}]`;
    if (!name) return [required(`${at}.name`)];
    const key = request ? `${name}/${request}` : name;
    if (seen.has(key)) return [duplicate(at, key)];
    seen.add(key);
    return claimNames.has(name) ? [] : [notFoundField(at, name)];
  });
}
