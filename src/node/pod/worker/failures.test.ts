import { expect, test } from 'vitest';
import { VolumeError } from '../../volumes/volume-error.ts';
import { createWorkerFailures } from './failures.ts';

const KEY = 'mountVolumes';
const MOUNT = { kind: 'mountVolumes' } as const;

test('failures of an action are counted until it succeeds', () => {
  const failures = createWorkerFailures();
  failures.failed(MOUNT, new Error('one'), 10);
  failures.failed(MOUNT, new VolumeError('v', 'no such host', 'ErrImagePull', 'far/image:1'), 20);
  expect(failures.observed()[0]).toEqual({
    action: MOUNT,
    at: 20,
    count: 2,
    reason: 'ErrImagePull',
    message: 'no such host',
    image: 'far/image:1',
  });
  failures.succeeded(KEY);
  expect(failures.observed()).toEqual([]);
});

test('retry() marks the last failure and the failure of an attempt under way as due', () => {
  const failures = createWorkerFailures();
  failures.retry(KEY, false);
  failures.failed(MOUNT, new Error('no'), 10);
  expect(failures.observed()[0]).not.toHaveProperty('due');
  failures.retry(KEY, false);
  expect(failures.observed()[0]).toMatchObject({ at: 10, due: true });
  failures.retry(KEY, true);
  failures.failed(MOUNT, new Error('no'), 20);
  expect(failures.observed()[0]).toMatchObject({ at: 20, due: true });
  failures.failed(MOUNT, new Error('no'), 30);
  expect(failures.observed()[0]).not.toHaveProperty('due');
});
