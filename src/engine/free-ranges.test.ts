import { expect, test } from 'vitest';
import { overlaps, parseCidr } from '../machinery/cidr.ts';
import { addressAt, chooseFreeRanges, requireCidr } from './free-ranges.ts';

test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.256/32', '10.0.0.1/24', 'fd00::/64', '', 'x/8'])(
  '--pod-cidr "%s" is refused because it is not an IPv4 network',
  (text) => {
    expect(() => requireCidr('--pod-cidr', text, 24)).toThrow(
      `--pod-cidr ${text} is not an IPv4 network: give one such as 10.222.0.0/16`,
    );
  },
);

test('requireCidr refuses a network that is too small or too large', () => {
  expect(() => requireCidr('--pod-cidr', '10.0.0.0/28', 24)).toThrow(/between \/8 and \/24/);
  expect(() => requireCidr('--pod-cidr', '0.0.0.0/0', 24)).toThrow(/between \/8 and \/24/);
});

test('addressAt counts from the start of the network', () => {
  expect(addressAt(parseCidr('10.96.0.0/16'), 10)).toBe('10.96.0.10');
  expect(addressAt(parseCidr('10.96.0.0/16'), 256)).toBe('10.96.1.0');
});

test('the free ranges for Pods and Services do not overlap', async () => {
  const { podCidr, serviceCidr } = await chooseFreeRanges();
  expect(overlaps(requireCidr('a', podCidr, 24), requireCidr('b', serviceCidr, 24))).toBe(false);
});
