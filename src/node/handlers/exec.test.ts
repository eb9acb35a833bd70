import { expect, it } from 'vitest';
import { expandCommand } from './exec.ts';

it.each([
  ['that is too long before expansion', ['$(A)'.repeat(700_000)], ''],
  ['that is too long after expansion', ['$(A)'.repeat(1000)], 'x'.repeat(1000)],
  ['with too many arguments', Array<string>(140_000).fill('word'), ''],
])('expandCommand refuses a command %s', (_, command, value) => {
  expect(() => expandCommand(command, [{ name: 'A', value }])).toThrow(
    'the command of the probe is larger than 256 KiB',
  );
});

it('expandCommand substitutes variables whose values are in the spec', () => {
  const env = [{ name: 'A', value: 'a' }, { name: 'ELSEWHERE' }];
  expect(expandCommand(['$(A)', '[$(ELSEWHERE)]', '$(UNKNOWN)', '$$(A)'], env)).toEqual([
    'a',
    '[]',
    '$(UNKNOWN)',
    '$(A)',
  ]);
});

it('expandCommand reads the variables of a container once for all of its probes', () => {
  let looks = 0;
  const variables = Array.from({ length: 1000 }, (_, index) => ({ name: `V${index}`, value: 'v' }));
  const env = new Proxy(variables, {
    get: (all, key) => {
      looks += 1;
      return Reflect.get(all, key);
    },
  });
  for (let probe = 0; probe < 100; probe++) expandCommand(['$(V1)'], env);
  expect(looks).toBeLessThan(variables.length * 10);
});
