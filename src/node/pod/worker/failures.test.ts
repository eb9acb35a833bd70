import { expect, test } from 'vitest';
import { type ActionOf, actionKey } from '../../../lifecycle/types.ts';
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
  failures.succeeded(MOUNT);
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

test('the outcome of a later start of a container ends the failures of its earlier starts, except unanswered ones', () => {
  const failures = createWorkerFailures();
  const start = (container: string, attempt: number): ActionOf<'startContainer'> => ({
    kind: 'startContainer',
    containerKind: 'app',
    container,
    attempt,
    image: 'image:1',
    sandboxId: 's',
    imageId: 'sha256:1',
    backoffSeconds: 0,
  });
  const keys = () => failures.observed().map(({ action }) => actionKey(action));
  failures.unanswered(start('app', 0), new Error('no answer'), 10);
  failures.failed(start('app', 1), new Error('no'), 20);
  failures.failed(start('other', 0), new Error('no'), 30);
  expect(keys()).toEqual(['startContainer/app/0', 'startContainer/app/1', 'startContainer/other/0']);
  failures.failed(start('app', 2), new Error('no'), 40);
  expect(keys()).toEqual(['startContainer/app/0', 'startContainer/other/0', 'startContainer/app/2']);
  failures.succeeded(start('app', 3));
  expect(keys()).toEqual(['startContainer/app/0', 'startContainer/other/0']);
});
