/**
 * Source: ipallocator of pkg/registry/core/service of v1.33 (behavior and wording); KEP-3070 (users choose addresses from the lower part of
 * a range).
 */
import type { ServiceSpec } from '../../../api/generated/types.ts';
import { type FieldError, invalid } from '../../../machinery/field-error.ts';
import { formatIp, type IpFamily, parseIp } from '../../../machinery/ip.ts';
import { internalError } from '../../../machinery/status.ts';
import { RESERVED_OFFSETS, type ServiceRange } from '../service-range.ts';
import { keepsPreferredFamilies } from './families.ts';
import { searchUpperFirst } from './upper-first.ts';

export const HEADLESS = 'None';

export interface AddressChoice {
  /** The ranges from which addresses can be allocated now, in order of use. */
  ranges: readonly ServiceRange[];
  /** Whether another object has the address, which is in canonical form. */
  isTaken(address: string): boolean;
  random(below: bigint): bigint;
  fail(errors: FieldError[]): Error;
  reserve(address: string): void;
}

/**
 * Sets clusterIP and clusterIPs, with one address for each of the Service's families. `old`: the spec before an update, whose addresses the
 * Service may keep. Throws 422 Invalid if a requested address is in use or in no range, and 500 InternalError if no address is free.
 */
export function assignClusterIps(spec: ServiceSpec, old: ServiceSpec | undefined, choice: AddressChoice): void {
  if (spec.clusterIP === HEADLESS) {
    spec.clusterIPs = [HEADLESS];
    return;
  }
  if (keepsPreferredFamilies(spec, old)) return;
  const kept = old === undefined || old.type === 'ExternalName' ? [] : (old.clusterIPs ?? []);
  const requested = spec.clusterIPs ?? [];
  spec.clusterIPs = (spec.ipFamilies ?? []).map((family, index) => {
    const wanted = requested[index] ?? '';
    if (wanted === '') return freeAddress(family as IpFamily, choice);
    if (!kept.includes(wanted)) checkAddress(wanted, requested, choice);
    return wanted;
  });
  spec.clusterIP = spec.clusterIPs[0] ?? '';
}

const canHave = ({ family, first, last }: ServiceRange, ip: { family: IpFamily; value: bigint }): boolean =>
  ip.family === family && ip.value >= first && ip.value <= last;

function checkAddress(text: string, shown: readonly string[], { ranges, isTaken, fail, reserve }: AddressChoice): void {
  const refuse = (cause: string) =>
    fail([invalid('spec.clusterIPs', shown, `failed to allocate IP ${text}: ${cause}`)]);
  const ip = parseIp(text);
  if (ip === undefined || !ranges.some((range) => canHave(range, ip))) {
    throw refuse('the provided network does not match the current range');
  }
  const address = formatIp(ip);
  if (isTaken(address)) throw refuse('provided IP is already allocated');
  reserve(address);
}

function freeAddress(family: IpFamily, { ranges, isTaken, random, reserve }: AddressChoice): string {
  for (const range of ranges) {
    if (range.family !== family) continue;
    const isFree = (value: bigint): boolean =>
      !RESERVED_OFFSETS.has(value - range.base) && !isTaken(formatIp({ family, value }));
    const value = searchUpperFirst(range, random, isFree);
    if (value === undefined) continue;
    const address = formatIp({ family, value });
    reserve(address);
    return address;
  }
  throw internalError('failed to allocate a serviceIP: range is full');
}
