import { expect, test } from 'vitest';
import { containerOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, PodSpec } from '../api/generated/types.ts';
import { isCritical, type Shortage, victimsFor } from './critical-pods.ts';

const named = (name: string, pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, name } });
const burstable = (name: string, cpu: number, memory = 0): Pod => {
  const requests = { cpu: String(cpu), memory: String(memory) };
  return named(name, podOf({ containers: [containerOf('app', { resources: { requests } })] }));
};
const guaranteed = (name: string, cpu: number): Pod => {
  const amounts = { cpu: String(cpu), memory: '1' };
  return named(
    name,
    podOf({ containers: [containerOf('app', { resources: { requests: amounts, limits: amounts } })] }),
  );
};
const bestEffort = (name: string): Pod => named(name, podOf());
const missing = (amounts: Record<string, number>): Shortage =>
  new Map(Object.entries(amounts).map(([name, amount]) => [name, BigInt(amount) * 1_000_000_000n]));

test.each<[string, Record<string, number>, Pod[], string[] | undefined]>([
  ['none if nothing is missing', {}, [burstable('a', 1)], []],
  ['the only one that is sufficient', { cpu: 2 }, [burstable('a', 1), burstable('b', 2), burstable('c', 4)], ['b']],
  ['the smaller of two that are sufficient', { cpu: 2 }, [burstable('a', 2, 9), burstable('b', 2, 5)], ['b']],
  ['two if one is not sufficient', { cpu: 3 }, [burstable('a', 1), burstable('b', 2), burstable('c', 1)], ['b', 'a']],
  [
    'Burstable Pods before Guaranteed ones',
    { cpu: 2 },
    [guaranteed('g', 2), burstable('a', 1), burstable('b', 1)],
    ['a', 'b'],
  ],
  ['a Guaranteed Pod if Burstable ones are not sufficient', { cpu: 3 }, [burstable('a', 2), guaranteed('g', 3)], ['g']],
  ['Burstable and Guaranteed Pods if both are needed', { cpu: 5 }, [burstable('a', 2), guaranteed('g', 3)], ['a', 'g']],
  [
    'a BestEffort Pod if only the number of Pods is exceeded',
    { pods: 1 },
    [guaranteed('g', 1), burstable('a', 1), bestEffort('e')],
    ['e'],
  ],
  [
    'the only one that frees both missing resources',
    { cpu: 1, memory: 8 },
    [burstable('a', 1), burstable('b', 0, 8), burstable('c', 1, 8)],
    ['c'],
  ],
  ['undefined if evicting all Pods is not sufficient', { cpu: 4 }, [burstable('a', 1), guaranteed('g', 2)], undefined],
])('victims for a critical Pod: %s', (_, shortage, pods, names) => {
  expect(victimsFor(missing(shortage), pods)?.map(({ metadata }) => metadata.name)).toEqual(names);
});

test.each<[string, Partial<Pod['metadata']>, Partial<PodSpec>, boolean, boolean]>([
  ['a Pod without a priority is not critical', {}, {}, false, false],
  ['a Pod with a priority below the system classes is not critical', {}, { priority: 1_999_999_999 }, false, false],
  ['a Pod with the priority of a system class is critical', {}, { priority: 2_000_001_000 }, false, true],
  ['a static Pod is critical', {}, {}, true, true],
  // The annotation of static Pods must not count, because any client can write it.
  [
    'a Pod with the annotation of static Pods is not critical',
    { annotations: { 'kubernetes.io/config.source': 'file' } },
    {},
    false,
    false,
  ],
])('%s', (_, metadata, spec, isStatic, critical) => {
  const pod = podOf(spec);
  expect(isCritical({ ...pod, metadata: { ...pod.metadata, ...metadata } }, isStatic)).toBe(critical);
});
