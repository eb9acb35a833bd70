/** Long lists of an object are compared in linear time. */
import { expect, test } from 'vitest';
import type { Pod, Taint, Toleration } from '../api/generated/types.ts';
import { hostPortsTaken } from './filters.ts';
import { staysForSeconds } from './node-taints.ts';
import { untoleratedTaint } from './requirements.ts';

/** Comparing all pairs takes several times STALL_MILLIS. */
const COUNT = 20_000;
const STALL_MILLIS = 1000;

const list = <T>(item: (index: number) => T): T[] => Array.from({ length: COUNT }, (_, index) => item(index));
const pod = (spec: object): Pod =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [], ...spec } }) as Pod;

/** In milliseconds of CPU time. */
function timeOf(call: () => void): number {
  const began = process.cpuUsage();
  call();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1000;
}

test('host ports of two Pods', () => {
  const ports = (first: number) => list((index) => ({ containerPort: 1, hostPort: first + index }));
  const [one, other] = [1, COUNT + 1].map((first) => pod({ containers: [{ name: 'a', ports: ports(first) }] })) as [
    Pod,
    Pod,
  ];
  expect(timeOf(() => expect(hostPortsTaken(one, [other])).toBe(false))).toBeLessThan(STALL_MILLIS);
  expect(hostPortsTaken(one, [one])).toBe(true);
});

test('taints and tolerations', () => {
  const taints: Taint[] = list((index) => ({ key: `k${index}`, value: 'v', effect: 'NoSchedule' }));
  const tolerations: Toleration[] = list((index) => ({ key: `k${COUNT - 1 - index}`, operator: 'Exists' }));
  const tolerant = pod({ tolerations });
  expect(timeOf(() => expect(untoleratedTaint(tolerant, taints)).toBeUndefined())).toBeLessThan(STALL_MILLIS);
  expect(untoleratedTaint(pod({ tolerations: tolerations.slice(1) }), taints)).toEqual(taints.at(-1));
  expect(untoleratedTaint(pod({ tolerations: [{ operator: 'Exists' }] }), taints)).toBeUndefined();
  const ofOtherEffect = pod({ tolerations: list(() => ({ operator: 'Exists', effect: 'NoExecute' })) });
  expect(timeOf(() => untoleratedTaint(ofOtherEffect, taints))).toBeLessThan(STALL_MILLIS);
  const evicting: Taint[] = list((index) => ({ key: `k${index}`, effect: 'NoExecute' }));
  expect(timeOf(() => expect(staysForSeconds(tolerant, evicting)).toBeUndefined())).toBeLessThan(STALL_MILLIS);
});
