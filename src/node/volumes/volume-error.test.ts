import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createFailures, VolumeError } from './volume-error.ts';

function start() {
  const timers = createVirtualTimers();
  const reported: string[] = [];
  const failures = createFailures(({ message }) => reported.push(message), timers);
  const fail = (cause: string) => failures.add(new VolumeError('data', cause));
  return { timers, reported, failures, fail };
}
const textOf = (cause: string): string => `MountVolume.SetUp failed for volume "data" : ${cause}`;

test('the caller reports one failure of the volumes of a Pod, and the other failures are reported at the end', () => {
  const { timers, reported, failures, fail } = start();
  const [first, second] = [fail('one'), fail('two')];
  const other = new Error('not of a volume');
  expect(failures.end([other, first, second])).toBe(first);
  expect(reported).toEqual([textOf('two')]);
  timers.advance(10_000);
  expect(reported).toEqual([textOf('two')]);
});

test('failures are reported after a second if other volumes are still being set up, and then not again', () => {
  const { timers, reported, failures, fail } = start();
  const first = fail('one');
  timers.advance(500);
  const second = fail('two');
  timers.advance(499);
  expect(reported).toEqual([]);
  timers.advance(1);
  expect(reported).toEqual([textOf('one'), textOf('two')]);
  expect(failures.end([first, second])).toBe(first);
  expect(reported).toHaveLength(2);
});

test('without a failure there is nothing to report', () => {
  const { reported, failures } = start();
  expect(failures.end([])).toBeUndefined();
  expect(reported).toEqual([]);
});

test('a failure with a reason of its own has the cause as its message', () => {
  expect(new VolumeError('data', 'cannot pull', 'ErrImagePull', 'image:1')).toMatchObject({
    message: 'cannot pull',
    reason: 'ErrImagePull',
    image: 'image:1',
  });
});
