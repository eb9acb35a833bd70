import { describe, expect, it } from 'vitest';
import { formatCidr, formatIpv4, overlaps, parseCidr, parseIpv4 } from './cidr.ts';

describe('CIDR', () => {
  it.each([
    ['10.244.0.0/24', '10.244.0.0/24'],
    ['10.244.3.7/16', '10.244.0.0/16'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['255.255.255.255/32', '255.255.255.255/32'],
  ])('%s is the range %s', (text, expected) => {
    expect(formatCidr(parseCidr(text))).toBe(expected);
  });
  it.each(['', '10.0.0.0', '10.0.0.0/33', '10.0.0.256/8', '::/0', '10.0.0/8', '010.0.0.0/8'])(
    'parseCidr refuses "%s"',
    (text) => {
      expect(() => parseCidr(text)).toThrow('is not an IPv4 range');
    },
  );
  it.each([
    ['10.0.0.0/8', '10.1.0.0/16', true],
    ['10.1.0.0/16', '10.0.0.0/8', true],
    ['10.0.0.0/24', '10.0.1.0/24', false],
    ['10.0.0.0/24', '10.0.0.255/32', true],
    ['0.0.0.0/0', '192.168.0.0/16', true],
  ])('the ranges %s and %s overlap: %s', (a, b, expected) => {
    expect(overlaps(parseCidr(a), parseCidr(b))).toBe(expected);
  });
  it('parseIpv4 and formatIpv4 convert addresses', () => {
    expect(formatIpv4((parseIpv4('10.96.0.255') as number) + 1)).toBe('10.96.1.0');
    expect(parseIpv4('10.96.0.x')).toBeUndefined();
  });
});
