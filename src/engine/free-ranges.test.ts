import { expect, test } from 'vitest';
import { overlaps, parseCidr } from '../network/cidr.ts';
import { addressAt, chooseFreeRanges, requireCidr } from './free-ranges.ts';

test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.256/32', '10.0.0.1/24', 'fd00::/64', '', 'x/8'])(
  '%j is not a network',
  (text) => {
    expect(() => requireCidr('--pod-cidr', text, 24)).toThrow(
      `--pod-cidr ${text} is not an IPv4 network: give one such as 10.222.0.0/16`,
    );
  },
);

test('a network that is too small or too large is refused', () => {
  expect(() => requireCidr('--pod-cidr', '10.0.0.0/28', 24)).toThrow(/between \/8 and \/24/);
  expect(() => requireCidr('--pod-cidr', '0.0.0.0/0', 24)).toThrow(/between \/8 and \/24/);
});

test('an address is counted from the start of its network', () => {
  expect(addressAt(parseCidr('10.96.0.0/16'), 10)).toBe('10.96.0.10');
  expect(addressAt(parseCidr('10.96.0.0/16'), 256)).toBe('10.96.1.0');
});

test('chosen ranges do not overlap', async () => {
  const { podCidr, serviceCidr } = await chooseFreeRanges();
  expect(overlaps(requireCidr('a', podCidr, 24), requireCidr('b', serviceCidr, 24))).toBe(false);
});
