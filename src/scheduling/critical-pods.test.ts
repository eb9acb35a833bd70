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
  ['nothing is missing', {}, [burstable('a', 1)], []],
  ['one is enough', { cpu: 2 }, [burstable('a', 1), burstable('b', 2), burstable('c', 4)], ['b']],
  ['a smaller one of two that are enough', { cpu: 2 }, [burstable('a', 2, 9), burstable('b', 2, 5)], ['b']],
  ['two are needed', { cpu: 3 }, [burstable('a', 1), burstable('b', 2), burstable('c', 1)], ['b', 'a']],
  ['Burstable before Guaranteed', { cpu: 2 }, [guaranteed('g', 2), burstable('a', 1), burstable('b', 1)], ['a', 'b']],
  ['Guaranteed where the others are not enough', { cpu: 3 }, [burstable('a', 2), guaranteed('g', 3)], ['g']],
  ['both', { cpu: 5 }, [burstable('a', 2), guaranteed('g', 3)], ['a', 'g']],
  ['for a place any will do', { pods: 1 }, [guaranteed('g', 1), burstable('a', 1), bestEffort('e')], ['e']],
  ['of two resources', { cpu: 1, memory: 8 }, [burstable('a', 1), burstable('b', 0, 8), burstable('c', 1, 8)], ['c']],
  ['not enough', { cpu: 4 }, [burstable('a', 1), guaranteed('g', 2)], undefined],
])('%s', (_, shortage, pods, names) => {
  expect(victimsFor(missing(shortage), pods)?.map(({ metadata }) => metadata.name)).toEqual(names);
});

test.each<[Partial<Pod['metadata']>, Partial<PodSpec>, boolean, boolean]>([
  [{}, {}, false, false],
  [{}, { priority: 1_999_999_999 }, false, false],
  [{}, { priority: 2_000_001_000 }, false, true],
  [{}, {}, true, true],
  // Anyone can write it.
  [{ annotations: { 'kubernetes.io/config.source': 'file' } }, {}, false, false],
])('%j %j, static %j: critical %j', (metadata, spec, isStatic, critical) => {
  const pod = podOf(spec);
  expect(isCritical({ ...pod, metadata: { ...pod.metadata, ...metadata } }, isStatic)).toBe(critical);
});
