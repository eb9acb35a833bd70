import { expect, test } from 'vitest';
import { gracePeriodOf, sameCommand } from './down-command.ts';
import { parseGracePeriod } from './grace-period.ts';

test.each(['', '-1', '1.5', '30s', '1e3', '99999999999', '4000000000', 'soon'])(
  '--grace-period %j is refused with what to give',
  (text) => {
    expect(() => parseGracePeriod(text)).toThrow('give whole seconds, such as 30');
  },
);

test.each([
  [{}, undefined],
  [{ now: true }, 1],
  [{ gracePeriod: parseGracePeriod('0') }, 1],
  [{ gracePeriod: parseGracePeriod('45') }, 45],
])('the options %j give the grace period %j', (options, seconds) => {
  expect(gracePeriodOf({ dataDir: '/d', ...options })).toBe(seconds);
});

test.each([
  [{}, 'down'],
  [{ now: true }, 'down'],
  [{ uninstallService: true }, 'down --uninstall-service'],
])('after an interruption of a command with the options %j, %s is to be repeated', (options, command) => {
  expect(sameCommand({ dataDir: '/d', ...options })).toBe(command);
});
