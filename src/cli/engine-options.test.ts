import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addEngineOptions } from './engine-options.ts';

function parsed(...args: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addEngineOptions(command);
  return command.parse(args, { from: 'user' }).opts();
}

test.each([
  ['--image-gc-high-threshold', '90%'],
  ['--image-gc-low-threshold', 'x'],
  ['--max-parallel-image-pulls', 'five'],
  ['--pod-pids-limit', '1k'],
  ['--max-grace-period-extension', '1h'],
])('the value of %s %s is not a whole number', (flag, text) => {
  expect(() => parsed(flag, text)).toThrow(`argument '${text}' is invalid. give a whole number without a unit.`);
});

test('options accept whole numbers, also negative ones', () => {
  expect(parsed('--pod-pids-limit', '-1', '--image-gc-high-threshold', '90')).toMatchObject({
    podPidsLimit: -1,
    imageGcHighThreshold: 90,
  });
});
