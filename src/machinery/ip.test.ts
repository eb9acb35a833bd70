import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressErrors,
  addressWarnings,
  canonicalIp,
  canonicalIpErrors,
  canonicalRangeErrors,
  formatIp,
  formatIpRange,
  type IpFamily,
  parseIp,
  parseIpRange,
  rangeContainsRange,
  rangeErrors,
  rangesOverlap,
  rangeWarnings,
} from './ip.ts';

test.each([
  ['10.9.8.7', '10.9.8.7'],
  ['255.255.255.255', '255.255.255.255'],
  ['::', '::'],
  ['::1', '::1'],
  ['1::', '1::'],
  ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ['::FFFF:192.0.2.1', '::ffff:192.0.2.1'],
  ['::ffff:c000:201', '::ffff:192.0.2.1'],
  ['010.0.0.1', undefined],
  ['10.0.0', undefined],
  ['fe80::1%eth0', undefined],
  ['1:::2', undefined],
  ['', undefined],
])('the canonical text of the address %j is %j', (text, canonical) => {
  expect(canonicalIp(text)).toBe(canonical);
});

const anyAddress = fc.constantFrom<IpFamily>('IPv4', 'IPv6').chain((family) =>
  fc.record({
    family: fc.constant(family),
    value: fc.bigInt(0n, family === 'IPv4' ? 2n ** 32n - 1n : 2n ** 128n - 1n),
  }),
);

test('each address is parsed from its canonical text', () => {
  fc.assert(
    fc.property(anyAddress, (address) => {
      expect(parseIp(formatIp(address))).toEqual(address);
    }),
  );
});

/** Addresses with many zeros, for which the canonical text is hardest to find. */
const sparseGroups = fc.array(fc.constantFrom(0, 0, 0, 1, 0xabc), { minLength: 8, maxLength: 8 });

test('the canonical text of an IPv6 address is that of a URL', () => {
  fc.assert(
    fc.property(sparseGroups, (groups) => {
      const text = groups.map((group) => group.toString(16)).join(':');
      expect(`[${canonicalIp(text)}]`).toBe(new URL(`http://[${text}]`).hostname);
    }),
  );
});

describe('ranges', () => {
  test.each([
    ['10.9.8.7/8', '10.0.0.0/8', true],
    ['0.0.0.0/0', '0.0.0.0/0', false],
    ['10.0.0.0/32', '10.0.0.0/32', false],
    ['FD00:0::/112', 'fd00::/112', false],
    ['fd00::1/64', 'fd00::/64', true],
    ['::/0', '::/0', false],
  ])('%j is the range %s, and has bits after its prefix: %s', (text, canonical, hasHostBits) => {
    const range = parseIpRange(text);
    expect(range?.hasHostBits).toBe(hasHostBits);
    expect(range && formatIpRange(range)).toBe(canonical);
  });

  test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/08', 'fd00::/129', '/8', '10.0.0.0/8/8', '10.0.0.0/-1', 'a/8'])(
    '%j is not a range',
    (text) => {
      expect(parseIpRange(text)).toBeUndefined();
    },
  );

  test.each([
    ['10.0.0.0/8', '10.1.0.0/16', true, true],
    ['10.1.0.0/16', '10.0.0.0/8', false, true],
    ['10.0.0.0/8', '10.0.0.0/8', true, true],
    ['10.0.0.0/9', '10.128.0.0/9', false, false],
    ['::/0', '10.0.0.0/8', false, false],
    ['0.0.0.0/0', '255.0.0.0/8', true, true],
  ])('%s contains %s: %s, and they overlap: %s', (a, b, contains, overlap) => {
    const [first, second] = [parseIpRange(a), parseIpRange(b)];
    if (first === undefined || second === undefined) throw new Error('not a range');
    expect(rangeContainsRange(first, second)).toBe(contains);
    expect(rangesOverlap(first, second)).toBe(overlap);
  });
});

const VALID_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const VALID_RANGE = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

test.each([
  ['10.0.0.1', [], []],
  ['x', [VALID_IP], [VALID_IP]],
  ['FD00::1', ['must be in canonical form ("fd00::1")'], []],
  ['::ffff:1.2.3.4', ['must not be an IPv4-mapped IPv6 address'], ['must not be an IPv4-mapped IPv6 address']],
])('the errors of the address %s', (text, strict, legacy) => {
  expect(canonicalIpErrors(text)).toEqual(strict);
  expect(addressErrors(text)).toEqual(legacy);
});

test.each([
  ['10.0.0.0/8', [], []],
  ['10.0.0.0', [VALID_RANGE], [VALID_RANGE]],
  ['10.0.0.1/8', ['must not have bits set beyond the prefix length'], []],
  ['FD00::/64', ['must be in canonical form ("fd00::/64")'], []],
  ['::ffff:1.2.3.4/128', ['must not have an IPv4-mapped IPv6 address'], ['must not have an IPv4-mapped IPv6 address']],
])('the errors of the range %s', (text, strict, legacy) => {
  expect(canonicalRangeErrors(text)).toEqual(strict);
  expect(rangeErrors(text)).toEqual(legacy);
});

test('an address and a range that are not in canonical form cause warnings', () => {
  expect(addressWarnings('a', 'fd00::1')).toEqual([]);
  expect(addressWarnings('a', 'FD00::1')).toEqual([
    'a: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
  ]);
  expect(rangeWarnings('a', '10.0.0.0/8')).toEqual([]);
  expect(rangeWarnings('a', '10.0.0.1/8')).toEqual([
    'a: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
  ]);
  expect(rangeWarnings('a', 'FD00::/64')).toEqual([
    'a: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")',
  ]);
});
