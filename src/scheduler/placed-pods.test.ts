import { expect, test } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { PlacedPods } from './placed-pods.ts';

const podOf = (name: string, spec: Partial<Pod['spec']> = {}, phase = 'Pending'): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: name },
    spec: { containers: [], ...spec },
    status: { phase },
  }) as Pod;

const placedWith = (...waiting: Pod[]) =>
  new PlacedPods(({ metadata }) => waiting.find((each) => each.metadata.uid === metadata.uid));
const namesOn = (placed: PlacedPods, node: string, pod = podOf('new')): string[] =>
  [...placed.before(pod)(node).pods].map(({ metadata }) => metadata.name).sort();

test('an assumed Pod counts on its node until the informer shows its binding, and afterwards still counts once', () => {
  const placed = placedWith();
  placed.assume(podOf('a'), 'n');
  placed.observe(podOf('a'));
  expect(namesOn(placed, 'n')).toEqual(['a']);
  expect(placed.isAssumed(podOf('a'))).toBe(true);
  placed.observe(podOf('a', { nodeName: 'n' }));
  expect(placed.isAssumed(podOf('a'))).toBe(false);
  expect(placed.before(podOf('new'))('n').count).toBe(1);
});

test('a Pod whose binding fails no longer counts, unless the informer has shown the binding', () => {
  const placed = placedWith();
  placed.assume(podOf('a'), 'n');
  placed.bindingFailed(podOf('a'));
  expect(namesOn(placed, 'n')).toEqual([]);
  placed.assume(podOf('b'), 'n');
  placed.observe(podOf('b', { nodeName: 'n' }));
  placed.bindingFailed(podOf('b'));
  expect(namesOn(placed, 'n')).toEqual(['b']);
});

test('a Pod counts on the node to which another client has bound it, not on the assumed node', () => {
  const placed = placedWith();
  placed.assume(podOf('a'), 'n');
  placed.observe(podOf('a', { nodeName: 'other' }));
  expect([namesOn(placed, 'n'), namesOn(placed, 'other')]).toEqual([[], ['a']]);
});

test('terminated and deleted Pods do not count', () => {
  const placed = placedWith();
  placed.observe(podOf('a', { nodeName: 'n' }, 'Running'));
  placed.observe(podOf('b', { nodeName: 'n' }, 'Running'));
  placed.observe(podOf('a', { nodeName: 'n' }, 'Succeeded'));
  placed.remove(podOf('b'));
  expect(namesOn(placed, 'n')).toEqual([]);
});

test('a waiting Pod counts on its nominated node only for other Pods of at most its priority', () => {
  const high = podOf('high', { priority: 5 });
  const placed = placedWith(high);
  placed.observe(podOf('bound', { nodeName: 'n' }, 'Running'));
  placed.nominate(high, 'n');
  expect(namesOn(placed, 'n', podOf('low', { priority: 5 }))).toEqual(['bound', 'high']);
  expect(namesOn(placed, 'n', podOf('higher', { priority: 6 }))).toEqual(['bound']);
  expect(namesOn(placed, 'n', high)).toEqual(['bound']);
  placed.nominate(high, undefined);
  expect(namesOn(placed, 'n', podOf('low'))).toEqual(['bound']);
});
