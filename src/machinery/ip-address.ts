/**
 * Rules for the addresses of endpoints, and for the external IPs of Services.
 * Source: pkg/apis/core/validation and k8s.io/apimachinery/pkg/util/validation of v1.33 (behavior and wording).
 */
import { BlockList, isIPv6 } from 'node:net';
import { addressErrors, type IpFamily } from './ip.ts';

/** A range of IPv4 addresses also contains their IPv4-mapped IPv6 addresses. */
function rangesOf(...ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/');
    list.addSubnet(address, Number(prefix), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

const HEX_DIGITS = [...'0123456789abcdef'];
/** Each forbidden range with upstream's message. */
const SPECIAL_RANGES: readonly (readonly [string, BlockList])[] = [
  ['may not be unspecified (0.0.0.0 or ::)', rangesOf('0.0.0.0/32', '::/128')],
  ['may not be in the loopback range (127.0.0.0/8, ::1/128)', rangesOf('127.0.0.0/8', '::1/128')],
  ['may not be in the link-local range (169.254.0.0/16, fe80::/10)', rangesOf('169.254.0.0/16', 'fe80::/10')],
  [
    'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
    // A multicast address is link-local if its scope is 2, whatever its flags are.
    rangesOf('224.0.0.0/24', ...HEX_DIGITS.map((flags) => `ff${flags}2::/16`)),
  ],
];

/** Rejects unspecified, loopback, link-local and link-local multicast addresses. `ip` must be a valid address. */
export function specialIpErrors(ip: string): string[] {
  const family = isIPv6(ip) ? 'ipv6' : 'ipv4';
  const found = SPECIAL_RANGES.find(([, ranges]) => ranges.check(ip, family));
  return found === undefined ? [] : [found[0]];
}

/** Without `family`, both families are accepted. */
export function endpointIpErrors(ip: string, family?: IpFamily): string[] {
  const errors = addressErrors(ip);
  if (errors.length > 0) return errors;
  if (family !== undefined && isIPv6(ip) !== (family === 'IPv6')) return [`must be an ${family} address`];
  return specialIpErrors(ip);
}
