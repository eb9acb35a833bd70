import { expect, test } from 'vitest';
import { podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Taint, Toleration } from '../api/generated/types.ts';
import { staysForSeconds } from './node-taints.ts';

const taint = (key: string, effect = 'NoExecute'): Taint => ({ key, effect });
const during = (key: string, tolerationSeconds?: number): Toleration => ({
  ...{ key, operator: 'Exists', effect: 'NoExecute' },
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

test.each<[string, Taint[], Toleration[], number | undefined]>([
  ['no taint', [], [], undefined],
  ['a taint for the scheduler alone', [taint('a', 'NoSchedule')], [], undefined],
  ['a taint that it does not tolerate', [taint('a')], [during('b')], 0],
  ['one that it tolerates', [taint('a')], [during('a')], undefined],
  ['one that it tolerates for a time', [taint('a')], [during('a', 5)], 5],
  ['the first toleration that fits counts', [taint('a')], [during('a', 5), during('a', 1)], 5],
  ['the shortest time of two taints', [taint('a'), taint('b')], [during('a', 5), during('b', 3)], 3],
  ['a time for one, the other for good', [taint('a'), taint('b')], [during('a', 5), during('b')], 5],
  ['one of two that it does not tolerate', [taint('a'), taint('b')], [during('a', 5)], 0],
  ['less than no time', [taint('a')], [during('a', -1)], 0],
])('%s', (_, taints, tolerations, seconds) => {
  expect(staysForSeconds(podOf({ tolerations }), taints)).toBe(seconds);
});

test('tolerations are not looked at where there is no taint that drives away', () => {
  const pod = podOf();
  Object.defineProperty(pod.spec, 'tolerations', {
    get: () => {
      throw new Error('looked at');
    },
  });
  expect(staysForSeconds(pod, [])).toBeUndefined();
  expect(staysForSeconds(pod, [taint('a', 'NoSchedule')])).toBeUndefined();
  expect(() => staysForSeconds(pod, [taint('a')])).toThrow('looked at');
});
