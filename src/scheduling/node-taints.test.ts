import { expect, test } from 'vitest';
import { podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Taint, Toleration } from '../api/generated/types.ts';
import { staysForSeconds } from './node-taints.ts';

const taint = (key: string, effect = 'NoExecute'): Taint => ({ key, effect });
const during = (key: string, tolerationSeconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});

test.each<[string, Taint[], Toleration[], number | undefined]>([
  ['the time is unlimited without taints', [], [], undefined],
  ['a NoSchedule taint is ignored', [taint('a', 'NoSchedule')], [], undefined],
  ['the time is 0 if the Pod does not tolerate a taint', [taint('a')], [during('b')], 0],
  ['the time is unlimited if the toleration has no limit', [taint('a')], [during('a')], undefined],
  ['the time is the tolerationSeconds of the toleration', [taint('a')], [during('a', 5)], 5],
  ['the first matching toleration is used', [taint('a')], [during('a', 5), during('a', 1)], 5],
  ['the shortest time for two taints is used', [taint('a'), taint('b')], [during('a', 5), during('b', 3)], 3],
  ['a toleration without a time does not limit another', [taint('a'), taint('b')], [during('a', 5), during('b')], 5],
  ['the time is 0 if the Pod does not tolerate one of two taints', [taint('a'), taint('b')], [during('a', 5)], 0],
  ['a negative time counts as 0', [taint('a')], [during('a', -1)], 0],
])('staysForSeconds(): %s', (_, taints, tolerations, seconds) => {
  expect(staysForSeconds(podOf({ tolerations }), taints)).toBe(seconds);
});

test('tolerations are not read if the node has no NoExecute taint', () => {
  const pod = podOf();
  Object.defineProperty(pod.spec, 'tolerations', {
    get: () => {
      throw new Error('read');
    },
  });
  expect(staysForSeconds(pod, [])).toBeUndefined();
  expect(staysForSeconds(pod, [taint('a', 'NoSchedule')])).toBeUndefined();
  expect(() => staysForSeconds(pod, [taint('a')])).toThrow('read');
});
