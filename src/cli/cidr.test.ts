import { expect, test } from 'vitest';
import { addressAt, type Cidr, chooseFreeRanges, overlaps, parseCidr, requireCidr, requireUnused } from './cidr.ts';

const cidr = (text: string): Cidr => parseCidr(text) as Cidr;

test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.256/32', '10.0.0.1/24', 'fd00::/64', '', 'x/8'])(
  '%j is not a network',
  (text) => {
    expect(parseCidr(text)).toBeUndefined();
    expect(() => requireCidr('--pod-cidr', text, 24)).toThrow(
      `--pod-cidr ${text} is not an IPv4 network: give one such as 10.222.0.0/16`,
    );
  },
);

test('a network has its first and last address', () => {
  expect(cidr('255.255.255.0/24')).toMatchObject({ first: 0xffffff00, last: 0xffffffff });
  expect(addressAt(cidr('10.96.0.0/16'), 10)).toBe('10.96.0.10');
  expect(addressAt(cidr('10.96.0.0/16'), 256)).toBe('10.96.1.0');
});

test('a network that is too small or too large is refused', () => {
  expect(() => requireCidr('--pod-cidr', '10.0.0.0/28', 24)).toThrow(/between \/8 and \/24/);
  expect(() => requireCidr('--pod-cidr', '0.0.0.0/0', 24)).toThrow(/between \/8 and \/24/);
});

test('networks overlap when one holds an address of the other', () => {
  expect(overlaps(cidr('10.0.0.0/8'), cidr('10.1.2.0/24'))).toBe(true);
  expect(overlaps(cidr('10.1.2.0/24'), cidr('10.0.0.0/8'))).toBe(true);
  expect(overlaps(cidr('10.1.2.0/24'), cidr('10.1.3.0/24'))).toBe(false);
});

test('a range in use is refused with what uses it', () => {
  const used = [{ cidr: cidr('10.1.2.3/32'), device: 'eth0' }];
  expect(() => requireUnused('--pod-cidr', cidr('10.1.0.0/16'), used)).toThrow(
    '--pod-cidr 10.1.0.0/16 overlaps 10.1.2.3/32, which this machine reaches through eth0: choose another --pod-cidr',
  );
  requireUnused('--pod-cidr', cidr('10.2.0.0/16'), used);
});

test('chosen ranges are free and do not overlap', async () => {
  const { podCidr, serviceCidr } = await chooseFreeRanges();
  expect(overlaps(requireCidr('a', podCidr, 24), requireCidr('b', serviceCidr, 24))).toBe(false);
});
