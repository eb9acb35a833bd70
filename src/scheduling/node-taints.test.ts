import { expect, test } from 'vitest';
import { podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Taint, Toleration } from '../api/generated/types.ts';
import { limitedStays } from './node-taints.ts';

const taint = (key: string, effect = 'NoExecute'): Taint => ({ key, effect });
const during = (key: string, tolerationSeconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});

test.each<[string, Taint[], Toleration[], string[]]>([
  ['the time is unlimited without taints', [], [], []],
  ['a NoSchedule taint is ignored', [taint('a', 'NoSchedule')], [], []],
  ['the time is 0 if the Pod does not tolerate a taint', [taint('a')], [during('b')], ['a 0']],
  ['the time is unlimited if the toleration has no limit', [taint('a')], [during('a')], []],
  ['the time is the tolerationSeconds of the toleration', [taint('a')], [during('a', 5)], ['a 5']],
  ['the first matching toleration is used', [taint('a')], [during('a', 5), during('a', 1)], ['a 5']],
  ['each of two taints has its time', [taint('a'), taint('b')], [during('a', 5), during('b', 3)], ['a 5', 'b 3']],
  [
    'a toleration without a time does not limit another',
    [taint('a'), taint('b')],
    [during('a', 5), during('b')],
    ['a 5'],
  ],
  ['only a taint counts that the Pod does not tolerate', [taint('a'), taint('b')], [during('a', 5)], ['b 0']],
  ['a negative time counts as 0', [taint('a')], [during('a', -1)], ['a 0']],
])('limitedStays(): %s', (_, taints, tolerations, expected) => {
  const limited = limitedStays(podOf({ tolerations }), taints);
  expect(limited.map(({ taint: { key }, seconds }) => `${key} ${seconds}`)).toEqual(expected);
});

test('tolerations are not read if the node has no NoExecute taint', () => {
  const pod = podOf();
  Object.defineProperty(pod.spec, 'tolerations', {
    get: () => {
      throw new Error('read');
    },
  });
  expect(limitedStays(pod, [])).toEqual([]);
  expect(limitedStays(pod, [taint('a', 'NoSchedule')])).toEqual([]);
  expect(() => limitedStays(pod, [taint('a')])).toThrow('read');
});
