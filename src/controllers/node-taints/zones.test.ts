import { expect, test } from 'vitest';
import type { Node } from '../../api/generated/types.ts';
import { createZones, evictionsPerSecond, type ZoneState, zoneOf, zoneState } from './zones.ts';

test.each<[ready: number, notReady: number, state: ZoneState, rate: number]>([
  [0, 0, 'Normal', 0.1],
  [1, 0, 'Normal', 0.1],
  [0, 1, 'FullDisruption', 0.1],
  [0, 60, 'FullDisruption', 0.1],
  [1, 1, 'Normal', 0.1],
  [1, 2, 'Normal', 0.1],
  [1, 3, 'PartialDisruption', 0],
  [3, 3, 'Normal', 0.1],
  [9, 11, 'PartialDisruption', 0],
  [10, 11, 'Normal', 0.1],
  [22, 28, 'PartialDisruption', 0],
  [22, 29, 'PartialDisruption', 0.01],
  [45, 55, 'PartialDisruption', 0.01],
  [46, 54, 'Normal', 0.1],
])(
  'a zone with %i nodes that are ready and %i that are not: %s, %f evictions per second',
  (ready, notReady, state, rate) => {
    expect([zoneState({ ready, notReady }), evictionsPerSecond({ ready, notReady })]).toEqual([state, rate]);
  },
);

const node = (name: string, ready: string | undefined, labels: Record<string, string> = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
  ...(ready !== undefined && { status: { conditions: [{ type: 'Ready', status: ready }] } }),
});
const ZONE = 'topology.kubernetes.io/zone';

test('the zone of a node is that of its labels for region and zone', () => {
  const labels: Record<string, string>[] = [
    {},
    { [ZONE]: 'a' },
    { [ZONE]: 'a', 'topology.kubernetes.io/region': 'r' },
    { [ZONE]: 'b' },
  ];
  expect(new Set(labels.map((each) => zoneOf(node('n', 'True', each)))).size).toBe(4);
});

test('the counts follow nodes that change, move to another zone and are removed', () => {
  const zones = createZones();
  const ready = (name: string, zone = 'a') => zones.set(node(name, 'True', { [ZONE]: zone }));
  const silent = (name: string, zone = 'a') => zones.set(node(name, 'Unknown', { [ZONE]: zone }));
  const rate = (zone: string) => zones.rateOf(zoneOf(node('n', 'True', { [ZONE]: zone })));
  expect([zones.areAllDown(), rate('a')]).toEqual([false, 0.1]);
  expect(ready('1')).toBe(false);
  expect([silent('2'), silent('3')]).toEqual([false, false]);
  expect(silent('4')).toBe(true);
  expect([rate('a'), rate('b')]).toEqual([0, 0.1]);
  expect(silent('4')).toBe(false);
  expect(silent('4', 'b')).toBe(true);
  expect([rate('a'), rate('b')]).toEqual([0.1, 0.1]);
  expect(zones.remove('1')).toBe(true);
  expect(zones.areAllDown()).toBe(true);
  expect(ready('4', 'b')).toBe(true);
  expect(zones.areAllDown()).toBe(false);
  for (const name of ['2', '3', '4']) zones.remove(name);
  expect([zones.areAllDown(), zones.remove('5')]).toEqual([false, false]);
});

test('a node without a Ready condition counts as not ready, and an excluded node does not count', () => {
  const zones = createZones();
  zones.set(node('new', undefined));
  expect(zones.areAllDown()).toBe(true);
  zones.set(node('new', undefined, { 'node.kubernetes.io/exclude-disruption': '' }));
  expect(zones.areAllDown()).toBe(false);
});
