import { expect } from 'vitest';
import type { CronJob, Job } from '../../src/api/generated/types.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const create = (name: string, schedule: string): Promise<string> =>
  lifepod.kubectlOk(
    'create',
    'cronjob',
    name,
    '--image=busybox:1.28',
    `--schedule=${schedule}`,
    '--',
    'echo',
    'ticked',
  );
const jobs = async (): Promise<Job[]> => (await lifepod.get<{ items: Job[] }>('jobs')).items;

test('a CronJob creates a Job at the time of its schedule, and none while it is suspended', async () => {
  expect(await create('tick', '@every 1s')).toBe('cronjob.batch/tick created\n');
  await lifepod.wait('cronjob/tick', '--for=jsonpath={.status.lastScheduleTime}');
  const suspend = JSON.stringify({ spec: { suspend: true } });
  expect(await lifepod.kubectlOk('patch', 'cronjob', 'tick', '-p', suspend)).toBe('cronjob.batch/tick patched\n');
  await record.event('tick', /^Normal SuccessfulCreate: Created job tick-\d+$/);
  const { metadata, status } = await lifepod.get<CronJob>('cronjob', 'tick');
  const [job] = await jobs();
  const scheduled = job?.metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'] ?? '';
  expect(job?.metadata).toMatchObject({
    name: `tick-${Math.floor(Date.parse(scheduled) / 60_000)}`,
    ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'tick', uid: metadata.uid, controller: true }],
  });
  await lifepod.wait(`job/${job?.metadata.name}`, '--for=condition=complete');
  expect(await lifepod.kubectlOk('logs', `job/${job?.metadata.name}`)).toBe('ticked\n');
  await record.event('tick', /^Normal SawCompletedJob: Saw completed job: tick-\d+, condition: Complete$/);
  await lifepod.wait('cronjob/tick', '--for=jsonpath={.status.lastSuccessfulTime}');
  expect(Date.parse(status?.lastScheduleTime ?? '')).toBeGreaterThanOrEqual(Date.parse(scheduled));
  expect(await lifepod.kubectlOk('get', 'cj', 'tick')).toMatch(/^tick +@every 1s +<none> +True +\d +\S+ +\S+$/m);
});

test('kubectl creates a Job from a CronJob, which reports the Job', async () => {
  await create('yearly', '0 0 1 1 *');
  expect(await lifepod.kubectlOk('create', 'job', 'now', '--from=cronjob/yearly')).toBe('job.batch/now created\n');
  const { metadata } = await lifepod.get<CronJob>('cronjob', 'yearly');
  expect((await jobs()).map((job) => job.metadata)).toEqual([
    expect.objectContaining({
      name: 'now',
      annotations: expect.objectContaining({ 'cronjob.kubernetes.io/instantiate': 'manual' }),
      ownerReferences: [
        expect.objectContaining({ kind: 'CronJob', name: 'yearly', uid: metadata.uid, controller: true }),
      ],
    }),
  ]);
  await lifepod.wait('job/now', '--for=condition=complete');
  await record.event('yearly', /^Warning UnexpectedJob: Saw a job that the controller did not create or forgot: now$/);
});

test('a schedule without a time is reported', async () => {
  await create('never', '0 0 31 2 *');
  await record.event('never', /^Warning InvalidSchedule: invalid schedule: 0 0 31 2 \* : time difference between/);
});
