import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createEvictionTurns } from './eviction-turns.ts';

/** Each node asks again when its turn is due, as in the controller. The turns are recorded as `SECOND NODE`. */
function setUp(rates: Record<string, number>) {
  const timers = createVirtualTimers(0);
  const turns: string[] = [];
  const stop = new AbortController();
  const limits = createEvictionTurns({
    rateOf: (zone) => rates[zone] ?? 0,
    due: (node) => ask(node),
    timers,
    signal: stop.signal,
  });
  function ask(node: string): void {
    const [zone = ''] = node;
    const had = turns.some((turn) => turn.endsWith(` ${node}`));
    if (limits.isTurn(node, zone) && !had) turns.push(`${timers.now() / 1000} ${node}`);
  }
  return { timers, turns, limits, ask, stop };
}

test('the first node of a zone has its turn at once, and the others follow in order, at the rate of their zone', () => {
  const { timers, turns, ask } = setUp({ a: 0.1, b: 0.01 });
  for (const node of ['a1', 'a2', 'a3', 'b1', 'b2']) ask(node);
  expect(turns).toEqual(['0 a1', '0 b1']);
  timers.advance(9_999);
  ask('a3');
  expect(turns).toHaveLength(2);
  timers.advance(90_001);
  expect(turns.slice(2)).toEqual(['10 a2', '20 a3', '100 b2']);
});

test('a node that leaves needs no turn, and asks again from the end', () => {
  const { timers, turns, limits, ask } = setUp({ a: 0.1 });
  for (const node of ['a1', 'a2', 'a3']) ask(node);
  limits.leave('a2');
  limits.leave('a0');
  ask('a2');
  timers.advance(20_000);
  expect(turns).toEqual(['0 a1', '10 a3', '20 a2']);
});

test('a node that has had its turn keeps it until it leaves', () => {
  const { timers, limits } = setUp({ a: 0.1 });
  expect(limits.isTurn('a1', 'a')).toBe(true);
  expect(limits.isTurn('a1', 'a')).toBe(true);
  limits.leave('a1');
  expect(limits.isTurn('a1', 'a')).toBe(false);
  timers.advance(10_000);
  expect(limits.isTurn('a1', 'a')).toBe(true);
});

test('a node that moves to another zone waits there', () => {
  const { limits } = setUp({ a: 0, b: 0.1 });
  expect(limits.isTurn('a1', 'a')).toBe(false);
  expect(limits.isTurn('a1', 'b')).toBe(true);
});

test('in a zone without evictions all nodes wait until its rate changes, and then a whole interval', () => {
  const rates = { a: 0 };
  const { timers, turns, limits, ask } = setUp(rates);
  for (const node of ['a1', 'a2']) ask(node);
  timers.advance(3_600_000);
  expect(turns).toEqual([]);
  rates.a = 0.1;
  limits.ratesChanged();
  timers.advance(20_000);
  expect(turns).toEqual(['3610 a1', '3620 a2']);
});

test('no turn is given after the end', () => {
  const { timers, turns, ask, stop } = setUp({ a: 0.1 });
  for (const node of ['a1', 'a2']) ask(node);
  stop.abort();
  timers.advance(60_000);
  expect(turns).toEqual(['0 a1']);
});
