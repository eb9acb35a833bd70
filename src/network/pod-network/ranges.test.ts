import { expect, test } from 'vitest';
import { podRanges } from './ranges.ts';

test('podRanges() returns the range of each family with its first usable address as the gateway', () => {
  const ipv4 = { family: 'IPv4', cidr: '10.1.0.0/16', gateway: '10.1.0.1' };
  expect(podRanges('10.1.0.0/16')).toEqual([ipv4]);
  expect(podRanges('10.1.0.0/16,fd00:1::/64')).toEqual([
    ipv4,
    { family: 'IPv6', cidr: 'fd00:1::/64', gateway: 'fd00:1::1' },
  ]);
});

test.each(['fd00::/64', 'fd00::/64,10.1.0.0/16', '10.1.0.0/16,10.2.0.0/16', '10.1.0.0/16,fd00::/64,fd01::/64'])(
  'podRanges() refuses "%s", which is not an IPv4 range and at most one IPv6 range',
  (text) => {
    expect(() => podRanges(text)).toThrow('is not an IPv4 range, which an IPv6 range may follow');
  },
);

test('podRanges() refuses a text that is not a range', () => {
  expect(() => podRanges('10.1.0.0/16,fd00::')).toThrow('"fd00::" is not a range such as');
});
