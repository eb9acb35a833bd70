import { expect, it } from 'vitest';
import { expandCommand } from './exec.ts';

it.each([
  ['that is long as it is written', ['$(A)'.repeat(700_000)], ''],
  ['that is long once it is expanded', ['$(A)'.repeat(1000)], 'x'.repeat(1000)],
  ['of many words', Array<string>(140_000).fill('word'), ''],
])('a command %s is refused', (_, command, value) => {
  expect(() => expandCommand(command, [{ name: 'A', value }])).toThrow(
    'the command of the probe is larger than 256 KiB',
  );
});

it('a command is expanded with what the spec has of its variables', () => {
  const env = [{ name: 'A', value: 'a' }, { name: 'ELSEWHERE' }];
  expect(expandCommand(['$(A)', '[$(ELSEWHERE)]', '$(UNKNOWN)', '$$(A)'], env)).toEqual([
    'a',
    '[]',
    '$(UNKNOWN)',
    '$(A)',
  ]);
});

it('the probes of a container share one look at its variables', () => {
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
