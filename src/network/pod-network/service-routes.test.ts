import { expect, test } from 'vitest';
import { metricOf, otherRoutes } from './service-routes.ts';

const BRIDGE = 'lp00c0ffee';
const route = (dst: string, { dev = BRIDGE, protocol = 'static' } = {}) => ({ dst, dev, protocol });

test('the routes of removed ranges are deleted, and not those of ranges with one address, which ip(8) prints as an address', () => {
  const wanted = ['10.96.0.0/16', '10.97.0.1/32', 'fd00:96::/112', 'fd00:97::1/128'];
  const kept = ['10.96.0.0/16', '10.97.0.1', 'fd00:96::/112', 'fd00:97::1'].map((dst) => route(dst));
  const removed = ['10.98.0.0/24', '10.98.1.1', 'fd00:98::/112', 'fd00:98::1'].map((dst) => route(dst));
  const foreign = [route('10.98.0.0/24', { dev: 'eth0' }), route('10.98.0.0/24', { protocol: 'kernel' })];
  expect(otherRoutes([...kept, ...removed, ...foreign], BRIDGE, wanted)).toEqual(removed);
});

test('the metrics of two bridges differ, and are larger than those of other programs', () => {
  const metrics = [BRIDGE, 'lpdeadbeef', 'lpffffffff'].map(metricOf);
  expect(new Set(metrics).size).toBe(3);
  expect(Math.min(...metrics)).toBeGreaterThanOrEqual(100_000);
});
