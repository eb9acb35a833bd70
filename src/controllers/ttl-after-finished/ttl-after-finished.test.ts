import { expect, test } from 'vitest';
import type { JobSpec, JobStatus } from '../../api/generated/types.ts';
import { JOBS } from '../../api/resources.ts';
import { formatTime } from '../../machinery/time.ts';
import { backend, controllerOptions, settled, timers, useRegistry } from '../controller-fixture.ts';
import { newJob } from '../job/job-fixture.ts';
import { startTtlAfterFinished } from './ttl-after-finished.ts';

useRegistry();

const complete = (): JobStatus => {
  const time = formatTime(timers.now());
  const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => ({
    type,
    status: 'True',
    lastTransitionTime: time,
  }));
  return { startTime: time, completionTime: time, succeeded: 1, conditions };
};
async function start(spec: Partial<JobSpec>): Promise<void> {
  await startTtlAfterFinished(controllerOptions());
  await backend.create(JOBS, 'a', newJob(spec));
  await settled();
}
const pass = async (seconds: number): Promise<void> => {
  timers.advance(seconds * 1000);
  await settled();
};
const finish = async (): Promise<void> => {
  await backend.setStatus(JOBS, 'a', 'work', complete());
  await settled();
};
const deleted = (): string[] | undefined => {
  const { deletionTimestamp, finalizers } = backend.objects(JOBS)[0]?.metadata ?? {};
  return deletionTimestamp === undefined ? undefined : finalizers;
};

test('a Job is deleted in the foreground ttlSecondsAfterFinished after it has ended', async () => {
  await start({ ttlSecondsAfterFinished: 30 });
  await pass(100);
  await finish();
  await pass(29);
  expect(deleted()).toBeUndefined();
  await pass(1);
  expect(deleted()).toEqual(['foregroundDeletion']);
});

test('a Job with ttlSecondsAfterFinished 0 is deleted when it ends', async () => {
  await start({ ttlSecondsAfterFinished: 0 });
  await finish();
  expect(deleted()).toEqual(['foregroundDeletion']);
});

test('a Job without the field remains, and the field can be set and changed after the end', async () => {
  await start({});
  await finish();
  await pass(1_000_000);
  expect(deleted()).toBeUndefined();
  const patch = (seconds: number): Promise<unknown> =>
    backend.patch(JOBS, 'a', 'work', 'application/merge-patch+json', { spec: { ttlSecondsAfterFinished: seconds } });
  await patch(2_000_000);
  await settled();
  expect(deleted()).toBeUndefined();
  await patch(1);
  await settled();
  expect(deleted()).toEqual(['foregroundDeletion']);
});

test('a Job whose time is prolonged just before its deletion remains', async () => {
  await start({ ttlSecondsAfterFinished: 10 });
  await finish();
  // A user changes the Job just before the controller reads it from the API, so the informer does not contain the change yet.
  const { get } = backend;
  backend.get = async (...args) => {
    await backend.patch(JOBS, 'a', 'work', 'application/merge-patch+json', { spec: { ttlSecondsAfterFinished: 20 } });
    return get(...args);
  };
  await pass(10);
  expect(deleted()).toBeUndefined();
  await pass(10);
  expect(deleted()).toEqual(['foregroundDeletion']);
});
