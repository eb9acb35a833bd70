/** Validation of Nodes. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { ipFamily, labelValueErrors, qualifiedNameErrors } from '../../../../machinery/names.ts';
import { parseQuantity } from '../../../../machinery/quantity.ts';
import type { Node, Taint } from '../../../generated/types.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function validateTaint(taint: Taint, field: string): FieldError[] {
  const errors = qualifiedNameErrors(taint.key).map((text) => invalid(`${field}.key`, taint.key, text));
  const valueErrors = labelValueErrors(taint.value ?? '');
  if (valueErrors.length > 0) errors.push(invalid(`${field}.value`, taint.value, valueErrors.join(';')));
  if (!taint.effect) errors.push(required(`${field}.effect`));
  else if (!EFFECTS.includes(taint.effect)) errors.push(notSupported(`${field}.effect`, taint.effect, EFFECTS));
  return errors;
}

function validateTaints(node: Node): FieldError[] {
  const seen = new Set<string>();
  return (node.spec?.taints ?? []).flatMap((taint, index) => {
    // Upstream reports this path, although the taints are in the spec.
    const field = `metadata.taints[${index}]`;
    const errors = validateTaint(taint, field);
    const pair = `${taint.key}:${taint.effect}`;
    if (seen.has(pair)) {
      errors.push(duplicate(field, taint, 'taints must be unique by key and effect pair'));
    }
    seen.add(pair);
    return errors;
  });
}

function validateResources(node: Node): FieldError[] {
  return (['capacity', 'allocatable'] as const).flatMap((list) =>
    Object.entries(node.status?.[list] ?? {}).flatMap(([name, text]) => {
      const quantity = parseQuantity(text);
      return quantity === undefined || quantity.nano < 0n
        ? [invalid(`status.${list}.${name}`, text, 'must be greater than or equal to 0')]
        : [];
    }),
  );
}

function isCidr(text: string): boolean {
  const [address = '', length = '', ...more] = text.split('/');
  const family = ipFamily(address);
  return more.length === 0 && family !== 0 && /^\d{1,3}$/.test(length) && Number(length) <= (family === 4 ? 32 : 128);
}

export function validateNode(node: Node): FieldError[] {
  const errors = allErrors(validateTaints(node), validateResources(node));
  const cidrs = node.spec?.podCIDRs ?? [];
  cidrs.forEach((cidr, index) => {
    if (!isCidr(cidr)) {
      const text = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
      errors.push(invalid(`spec.podCIDRs[${index}]`, cidr, text));
    }
  });
  if (cidrs.length > 2) {
    errors.push(invalid('spec.podCIDRs', cidrs, 'may specify no more than one CIDR for each IP family'));
  }
  return errors;
}

export function validateNodeUpdate(node: Node, old: Node): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  node.status?.addresses?.forEach((address, index) => {
    const key = `${address.type} ${address.address}`;
    if (seen.has(key)) errors.push(duplicate(`status.addresses[${index}]`, address));
    seen.add(key);
  });
  const cidrs = (old.spec?.podCIDRs ?? []).join();
  if (cidrs !== '' && cidrs !== (node.spec?.podCIDRs ?? []).join()) {
    errors.push(forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  if (old.spec?.providerID && old.spec.providerID !== node.spec?.providerID) {
    errors.push(forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'));
  }
  return errors;
}
