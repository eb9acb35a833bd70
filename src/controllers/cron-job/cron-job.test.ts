import { describe, expect, test } from 'vitest';
import type { CoreV1Event, CronJob, CronJobSpec, Job } from '../../api/generated/types.ts';
import { CRON_JOBS, EVENTS, JOBS, NAMESPACES } from '../../api/resources.ts';
import { forbidden, objectModified, serviceUnavailable } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { backend, controllerOptions, settled, stopControllers, timers, useRegistry } from '../controller-fixture.ts';
import { startCronJobs } from './cron-job.ts';
import { finished, MINUTE, manualJob, spec } from './cron-job-fixture.ts';

useRegistry();

async function start(): Promise<void> {
  await startCronJobs({ ...controllerOptions(), localZone: 'UTC' });
  await settled();
}
async function create(changes: Partial<CronJobSpec> = {}): Promise<void> {
  const metadata = { name: 'tick', namespace: 'a' };
  await backend.create(CRON_JOBS, 'a', {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata,
    spec: spec(changes),
  } as CronJob);
  await settled();
}
async function change(changes: Partial<CronJobSpec>): Promise<void> {
  await backend.patch(CRON_JOBS, 'a', 'tick', 'application/merge-patch+json', { spec: changes });
  await settled();
}
async function pass(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    timers.advance(MINUTE);
    await settled();
  }
}
const tick = (): CronJob => backend.objects(CRON_JOBS)[0] as CronJob;
const jobs = (): Job[] => backend.objects(JOBS) as Job[];
const names = (): string[] => jobs().map(({ metadata }) => metadata.name);
const activeNames = (): (string | undefined)[] => (tick().status?.active ?? []).map(({ name }) => name);
const nameNow = (ago = 0): string => `tick-${Math.floor(timers.now() / MINUTE) - ago}`;
const events = (): string[] =>
  (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason, message = '' }) => `${reason}: ${message}`);
async function end(name: string, type: 'Complete' | 'Failed' = 'Complete'): Promise<void> {
  await backend.setStatus(JOBS, 'a', name, finished(type, timers.now()));
  await settled();
}

test('a CronJob creates a Job at each time, and its status and its Events follow the Jobs', async () => {
  await start();
  await create();
  expect(names()).toEqual([]);
  await pass(1);
  const first = nameNow();
  expect(names()).toEqual([first]);
  expect(jobs()[0]?.metadata).toMatchObject({
    labels: { app: 'tick' },
    annotations: { note: 'x', 'batch.kubernetes.io/cronjob-scheduled-timestamp': formatTime(timers.now()) },
    ownerReferences: [{ kind: 'CronJob', name: 'tick', uid: tick().metadata.uid, controller: true }],
  });
  expect(tick().status).toEqual({
    active: [expect.objectContaining({ apiVersion: 'batch/v1', kind: 'Job', name: first, namespace: 'a' })],
    lastScheduleTime: formatTime(timers.now()),
  });
  await end(first);
  expect(tick().status).toEqual({
    lastScheduleTime: formatTime(timers.now()),
    lastSuccessfulTime: formatTime(timers.now() + 1000),
  });
  await pass(2);
  expect(names()).toEqual([first, nameNow(1), nameNow()]);
  expect(activeNames()).toEqual([nameNow(1), nameNow()]);
  expect(events().slice(0, 3)).toEqual([
    `SuccessfulCreate: Created job ${first}`,
    `SawCompletedJob: Saw completed job: ${first}, condition: Complete`,
    `SuccessfulCreate: Created job ${nameNow(1)}`,
  ]);
});

test('between two times, the controller makes no call', async () => {
  await start();
  await create({ schedule: '0 * * * *' });
  const calls = backend.calls.length;
  timers.advance(59 * MINUTE);
  await settled();
  expect(backend.calls).toHaveLength(calls);
  await pass(1);
  expect(names()).toEqual([nameNow()]);
});

test('a suspended CronJob creates no Job; when it is resumed, the latest missed time is started', async () => {
  await start();
  await create({ suspend: true });
  await pass(5);
  expect(names()).toEqual([]);
  timers.advance(MINUTE / 2);
  await change({ suspend: false });
  expect(names()).toEqual([nameNow()]);
  await pass(1);
  expect(names()).toHaveLength(2);
  await change({ suspend: true });
  await pass(3);
  expect(names()).toHaveLength(2);
});

test('the latest of the times that were missed while no engine ran is started', async () => {
  await start();
  await create();
  await pass(1);
  stopControllers();
  timers.advance(200.5 * MINUTE);
  await start();
  expect(names()).toEqual([expect.any(String), nameNow()]);
  expect(tick().status?.lastScheduleTime).toBe(formatTime(timers.now() - MINUTE / 2));
  expect(events().filter((text) => text.startsWith('TooManyMissedTimes'))).toHaveLength(1);
});

test('a time that was missed for longer than the starting deadline is not started, with one Event', async () => {
  await start();
  await create({ schedule: '0 * * * *', startingDeadlineSeconds: 60 });
  stopControllers();
  timers.advance(62 * MINUTE);
  await start();
  await change({ successfulJobsHistoryLimit: 5 });
  expect(names()).toEqual([]);
  expect(events()).toEqual(['MissSchedule: Missed scheduled time to start a job: Sat, 31 Jan 2026 01:00:00 +0000']);
  await pass(58);
  expect(names()).toEqual([nameNow()]);
});

test('a new schedule starts no time in the past', async () => {
  await start();
  await create({ schedule: '0 0 1 1 *' });
  await pass(90);
  await change({ schedule: '0 * * * *' });
  expect(names()).toEqual([]);
  await pass(30);
  expect(names()).toEqual([nameNow()]);
});

test('@every 1s is started once a minute, because the Jobs of a minute have one name', async () => {
  await start();
  await create({ schedule: '@every 1s' });
  timers.advance(1000);
  await settled();
  expect(names()).toEqual([nameNow()]);
  for (let second = 0; second < 30; second++) {
    timers.advance(1000);
    await settled();
  }
  expect(names()).toHaveLength(1);
  timers.advance(30_000);
  await settled();
  expect(names()).toHaveLength(2);
});

describe('the concurrency policy', () => {
  test('Forbid waits for the running Job, and starts the missed time then', async () => {
    await start();
    await create({ concurrencyPolicy: 'Forbid' });
    await pass(3);
    const first = nameNow(2);
    expect(names()).toEqual([first]);
    expect(events().at(-1)).toMatch(/^JobAlreadyActive: Not starting job because prior execution is running/);
    await end(first, 'Failed');
    expect(names()).toEqual([first, nameNow()]);
  });

  test('Replace deletes the running Job in the background before it creates the next', async () => {
    await start();
    await create({ concurrencyPolicy: 'Replace' });
    await pass(1);
    const options: unknown[] = [];
    const remove = backend.delete;
    backend.delete = (ref, namespace, name, given) => {
      options.push(given?.propagationPolicy);
      return remove(ref, namespace, name, given);
    };
    await pass(1);
    expect(names()).toEqual([nameNow()]);
    expect(activeNames()).toEqual([nameNow()]);
    expect(options).toEqual(['Background']);
    expect(events().slice(1)).toEqual([
      `SuccessfulDelete: Deleted job ${nameNow(1)}`,
      `SuccessfulCreate: Created job ${nameNow()}`,
    ]);
  });

  test('Replace creates no Job while it cannot delete the running one', async () => {
    await start();
    await create({ concurrencyPolicy: 'Replace' });
    await pass(1);
    const first = nameNow();
    backend.failNext('delete jobs', serviceUnavailable('not now'));
    timers.advance(MINUTE);
    await settled();
    expect(names()).toEqual([first]);
    expect(events().at(-1)).toBe('FailedDelete: Deleted job: not now');
    timers.advance(1000);
    await settled();
    expect(names()).toEqual([nameNow()]);
  });
});

test('finished Jobs that exceed the limits are deleted, the oldest first', async () => {
  await start();
  await create({ successfulJobsHistoryLimit: 2, failedJobsHistoryLimit: 1 });
  for (let minute = 0; minute < 6; minute++) {
    await pass(1);
    await end(nameNow(), minute % 2 === 0 ? 'Complete' : 'Failed');
  }
  expect(names()).toEqual([nameNow(3), nameNow(1), nameNow()]);
  expect(events().filter((text) => text.startsWith('SuccessfulDelete'))).toHaveLength(3);
});

test('a Job that a user deletes leaves the status', async () => {
  await start();
  await create();
  await pass(1);
  await backend.delete(JOBS, 'a', nameNow(), { propagationPolicy: 'Background' });
  await settled();
  expect(tick().status).toEqual({ lastScheduleTime: formatTime(timers.now()) });
  expect(events().at(-1)).toBe(`MissingJob: Active job went missing: ${nameNow()}`);
});

test('a Job that a user creates from the CronJob is reported, and counts for the history', async () => {
  await start();
  await create({ schedule: '@daily', successfulJobsHistoryLimit: 0 });
  const { metadata, ...rest } = manualJob('now');
  const { uid: _, ownerReferences = [], ...own } = metadata;
  const owners = ownerReferences.map((reference) => ({ ...reference, uid: tick().metadata.uid ?? '' }));
  await backend.create(JOBS, 'a', { ...rest, metadata: { ...own, ownerReferences: owners } } as Job);
  await settled();
  expect(tick().status).toEqual({});
  expect(events()).toEqual(['UnexpectedJob: Saw a job that the controller did not create or forgot: now']);
  await end('now');
  expect(names()).toEqual([]);
  expect(tick().status?.lastSuccessfulTime).toBe(formatTime(timers.now() + 1000));
});

describe('a create that fails', () => {
  test('is reported and repeated', async () => {
    await start();
    await create();
    backend.failNext('create jobs', forbidden(JOBS, 'x', 'exceeded quota: q'));
    timers.advance(MINUTE);
    await settled();
    expect(names()).toEqual([]);
    expect(events()).toEqual([expect.stringMatching(/^FailedCreate: Error creating job: .*exceeded quota: q/)]);
    timers.advance(1000);
    await settled();
    expect(names()).toEqual([nameNow()]);
    await pass(1);
    expect(names()).toHaveLength(2);
  });

  test('because the name is in use is not repeated, and the next time is started', async () => {
    await start();
    await create();
    const { apiVersion, kind, spec: template } = manualJob('x');
    const other = {
      apiVersion,
      kind,
      metadata: { name: `tick-${timers.now() / MINUTE + 1}`, namespace: 'a' },
      spec: template,
    };
    await backend.create(JOBS, 'a', other as Job);
    await pass(1);
    expect(tick().status).toEqual({});
    await pass(1);
    expect(names()).toEqual([nameNow(1), nameNow()]);
  });

  test('in a namespace that is being deleted is not reported', async () => {
    await start();
    await create();
    await backend.remove(NAMESPACES, undefined, 'a');
    await pass(2);
    expect([names(), events()]).toEqual([[], []]);
  });
});

test('a status that is not written is completed from the Job', async () => {
  await start();
  await create();
  backend.failNext('update cronjobs/status', objectModified(CRON_JOBS, 'tick'));
  await pass(1);
  const calls = backend.calls.filter((call) => call.startsWith('create jobs'));
  expect(calls).toEqual([`create jobs a/${nameNow()}`]);
  expect(activeNames()).toEqual([nameNow()]);
  expect(tick().status?.lastScheduleTime).toBe(formatTime(timers.now()));
});

test('a schedule without a time is reported once for each change, and never looked at again', async () => {
  await start();
  await create({ schedule: '0 0 31 2 *' });
  const calls = backend.calls.length;
  timers.advance(40 * 24 * 60 * MINUTE);
  await settled();
  expect(backend.calls).toHaveLength(calls);
  expect(events()).toEqual([
    'InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second',
  ]);
});
