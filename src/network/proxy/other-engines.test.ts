import { expect, test } from 'vitest';
import { printedRange } from '../pod-network/ranges.ts';
import { serviceRangesIn } from './other-engines.ts';

const CHAIN = `table inet lifepod-00c0ffee {
	chain unknown-addresses {
		ip daddr { 10.96.0.0/16, 10.98.0.0-10.98.2.255, 10.99.0.1 } fib daddr type != local drop
		ip6 daddr fd00:96::1 fib daddr type != local drop
	}
}`;

test.each([
  ['10.96.7.0/24', '10.96.0.0/16'],
  ['10.98.2.0/24', '10.98.0.0-10.98.2.255'],
  ['10.98.3.0/24', undefined],
  ['10.99.0.0/24', '10.99.0.1'],
  ['10.99.1.0/24', undefined],
  ['fd00:96::/112', 'fd00:96::1'],
  ['fd00:97::/112', undefined],
])('the range %s overlaps the Service range %s of another engine', (own, expected) => {
  const range = printedRange(own);
  if (range === undefined) throw new Error(`not a range: ${own}`);
  const found = serviceRangesIn('lifepod-00c0ffee', CHAIN).filter((other) => other.overlaps(range));
  expect(found.map(({ text }) => text)).toEqual(expected === undefined ? [] : [expected]);
});
