import { describe, expect, test } from 'vitest';
import type { CronJobSpec, CronJobStatus, Job } from '../../api/generated/types.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { active, cronJob, finished, MINUTE, manualJob, NOW, scheduledJob } from './cron-job-fixture.ts';
import { type Decision, nextStart, reconcile } from './reconcile.ts';

interface State {
  spec?: Partial<CronJobSpec>;
  status?: CronJobStatus;
  metadata?: Partial<ObjectMeta>;
  jobs?: Job[];
  missing?: string[];
  reported?: Millis;
  localZone?: string;
}

const at = (minutes: number): Millis => NOW + minutes * MINUTE;
const nameAt = (minutes: number): string => `tick-${at(minutes) / MINUTE}`;

function decided(minutes: number, { spec, status, metadata, jobs = [], missing = [], ...rest }: State = {}): Decision {
  const isMissing = ({ uid }: { uid?: string }): boolean => missing.includes(uid ?? '');
  const object = cronJob(spec, status, metadata);
  return reconcile({ cronJob: object, jobs, isMissing, now: at(minutes), localZone: 'UTC', ...rest });
}
const notes = ({ notes: all }: Decision): string[] =>
  all.map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
const started = ({ start }: Decision): string | undefined => start?.job.metadata.name;
const last = (minutes: number): CronJobStatus => ({ lastScheduleTime: formatTime(at(minutes)) });

describe('the start of a Job', () => {
  test('waits for the first time after the creation', () => {
    expect(decided(0.9).start).toBeUndefined();
    const { start, status } = decided(1.5);
    expect(start?.scheduled).toBe(at(1));
    expect(status).toEqual({});
    expect(start?.job).toMatchObject({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: {
        name: nameAt(1),
        namespace: 'a',
        labels: { app: 'tick' },
        annotations: { note: 'x', 'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-01-31T12:01:00Z' },
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'tick', uid: 'tick', controller: true }],
      },
      spec: { template: { spec: { containers: [{ name: 'app', image: 'x' }] } } },
    });
  });

  test('shows the scheduled time by the clock of the time zone', () => {
    const timeZone = 'America/New_York';
    expect(decided(1, { spec: { timeZone } }).start?.job.metadata.annotations).toMatchObject({
      'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-01-31T07:01:00-05:00',
    });
  });

  test.each<[string, number, State, string | undefined]>([
    ['the time has been started', 1.5, { status: last(1) }, undefined],
    ['the next time has come', 2, { status: last(1) }, nameAt(2)],
    ['several times were missed', 7.5, { status: last(1) }, nameAt(7)],
    ['it is suspended', 1, { spec: { suspend: true } }, undefined],
    ['it is being deleted', 1, { metadata: { deletionTimestamp: formatTime(NOW) } }, undefined],
    ['the time is within the starting deadline', 1.4, { spec: { startingDeadlineSeconds: 30 } }, nameAt(1)],
    ['the time is past the starting deadline', 1.6, { spec: { startingDeadlineSeconds: 30 } }, undefined],
    [
      '@every has a starting deadline that is shorter than its period',
      60.1,
      { spec: { schedule: '@every 1h', startingDeadlineSeconds: 30 } },
      nameAt(60),
    ],
    ['the schedule follows the clock of its time zone', 1, { spec: { timeZone: 'Asia/Kolkata' } }, nameAt(1)],
    [
      'the time of another zone has come',
      30,
      { spec: { schedule: '0 18 * * *', timeZone: 'Asia/Kolkata' } },
      nameAt(30),
    ],
    [
      'the time of the local zone has come',
      30,
      { spec: { schedule: '0 18 * * *' }, localZone: 'Asia/Kolkata' },
      nameAt(30),
    ],
  ])('if %s', (_, now, state, name) => {
    expect(started(decided(now, state))).toBe(name);
  });

  test('follows a time zone in an old schedule', () => {
    expect(started(decided(30, { spec: { schedule: 'TZ=Asia/Kolkata 0 18 * * *' } }))).toBe(nameAt(30));
  });
});

describe('concurrency', () => {
  const running = scheduledJob(at(1));
  const state = (concurrencyPolicy: string): State => ({
    spec: { concurrencyPolicy },
    status: { ...last(1), active: active(running) },
    jobs: [running],
  });

  test('Allow starts another Job', () => {
    expect(decided(2, state('Allow')).start).toMatchObject({ scheduled: at(2), replaced: [] });
  });

  test('Forbid skips the time, with an Event, and starts the Job late if the other one ends in time', () => {
    const skipped = decided(2, state('Forbid'));
    expect(skipped.start).toBeUndefined();
    expect(notes(skipped)).toEqual([
      'Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid',
    ]);
    const ended = scheduledJob(at(1), finished('Complete', at(1)));
    expect(started(decided(2.5, { ...state('Forbid'), jobs: [ended] }))).toBe(nameAt(2));
  });

  test('Replace deletes the running Jobs first', () => {
    expect(decided(2, state('Replace')).start).toMatchObject({ scheduled: at(2), replaced: active(running) });
  });

  test('a Job that a user has created from the CronJob does not prevent a start', () => {
    const decision = decided(2, { spec: { concurrencyPolicy: 'Forbid' }, status: last(1), jobs: [manualJob('now')] });
    expect(started(decision)).toBe(nameAt(2));
    expect(notes(decision)).toEqual([
      'Warning UnexpectedJob: Saw a job that the controller did not create or forgot: now',
    ]);
  });
});

describe('missed times', () => {
  test('more than 100 are reported, and the latest is started', () => {
    const decision = decided(201.5, { status: last(1) });
    expect(started(decision)).toBe(nameAt(201));
    expect(notes(decision)).toEqual([
      'Warning TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew',
    ]);
  });

  test('a time that the starting deadline excludes is reported once', () => {
    const state: State = { spec: { schedule: '0 * * * *', startingDeadlineSeconds: 30 }, status: last(0) };
    const decision = decided(150, state);
    expect(decision.missed).toBe(at(120));
    expect(notes(decision)).toEqual([
      'Warning MissSchedule: Missed scheduled time to start a job: Sat, 31 Jan 2026 14:00:00 +0000',
    ]);
    expect(notes(decided(150, { ...state, reported: at(120) }))).toEqual([]);
    expect(notes(decided(180.75, { ...state, reported: at(120) }))).toHaveLength(1);
  });

  test('a time whose deadline has not passed is not reported', () => {
    expect(notes(decided(59, { spec: { schedule: '0 * * * *', startingDeadlineSeconds: 30 } }))).toEqual([]);
  });
});

test.each<[string, Partial<CronJobSpec>, string]>([
  [
    'has no time',
    { schedule: '0 0 31 2 *' },
    'InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second',
  ],
  [
    'has an unknown time zone',
    { timeZone: 'Odd/Zone' },
    'UnknownTimeZone: invalid timeZone: "Odd/Zone": unknown time zone Odd/Zone',
  ],
  [
    'cannot be parsed',
    { schedule: 'x' },
    'UnparseableSchedule: unparseable schedule: "x" : expected exactly 5 fields, found 1: [x]',
  ],
  [
    'contains an unknown time zone',
    { schedule: 'TZ=Odd/Zone @daily' },
    'UnparseableSchedule: unparseable schedule: "TZ=Odd/Zone @daily" : provided bad location Odd/Zone: unknown time zone Odd/Zone',
  ],
])('a schedule that %s starts nothing, with an Event', (_, spec, note) => {
  const decision = decided(5, { spec });
  expect(decision.start).toBeUndefined();
  expect(notes(decision)).toEqual([`Warning ${note}`]);
  expect(nextStart(cronJob(spec), at(5), 'UTC')).toBeUndefined();
});

describe('the status', () => {
  test('loses finished Jobs, and shows the last success', () => {
    const jobs = [
      scheduledJob(at(1), finished('Complete', at(1))),
      scheduledJob(at(2), finished('Failed', at(2))),
      scheduledJob(at(3)),
    ];
    const decision = decided(3.5, { status: { ...last(3), active: active(...jobs) }, jobs });
    expect(decision.status).toEqual({
      ...last(3),
      active: active(...jobs.slice(2)),
      lastSuccessfulTime: '2026-01-31T12:01:01Z',
    });
    expect(notes(decision)).toEqual([
      `Normal SawCompletedJob: Saw completed job: ${nameAt(1)}, condition: Complete`,
      `Normal SawCompletedJob: Saw completed job: ${nameAt(2)}, condition: Failed`,
    ]);
  });

  test('also counts the success of a Job that a user has created', () => {
    const decision = decided(0.5, { jobs: [manualJob('now', finished('Complete', NOW))] });
    expect(decision.status).toEqual({ lastSuccessfulTime: '2026-01-31T12:00:01Z' });
  });

  test('loses a Job that was deleted, but none that only the copy lacks', () => {
    const [one, two] = [scheduledJob(at(1)), scheduledJob(at(2))];
    const decision = decided(2.5, { status: { ...last(2), active: active(one, two) }, missing: [nameAt(1)] });
    expect(decision.status.active).toEqual(active(two));
    expect(notes(decision)).toEqual([`Normal MissingJob: Active job went missing: ${nameAt(1)}`]);
  });

  test('gets a Job that was created before a crash, whose time is not started again', () => {
    const decision = decided(1.5, { jobs: [scheduledJob(at(1))] });
    expect(decision.status).toMatchObject({ ...last(1), active: active(scheduledJob(at(1))) });
    expect([decision.start, notes(decision)]).toEqual([undefined, []]);
  });

  test('gets the time of a Job that was created before a crash and has finished', () => {
    const jobs = [scheduledJob(at(1), finished('Failed', at(1)))];
    const decision = decided(1.5, { spec: { failedJobsHistoryLimit: 0 }, jobs });
    expect(decision.status).toEqual(last(1));
    expect([decision.start, decision.remove]).toEqual([undefined, jobs]);
  });

  test('does not get a Job that is being deleted', () => {
    const job = scheduledJob(at(1));
    const deleting = { ...job, metadata: { ...job.metadata, deletionTimestamp: formatTime(at(2)) } };
    expect(decided(1.5, { status: last(1), jobs: [deleting] })).toMatchObject({ status: last(1), notes: [] });
  });

  test('ignores the annotation of a Job with another name', () => {
    const job = scheduledJob(at(9));
    const copied = { ...job, metadata: { ...job.metadata, name: 'now' } };
    expect(decided(1.5, { jobs: [copied] }).status).toEqual({});
  });
});

describe('the history', () => {
  const jobs = [5, 1, 3, 2, 4].map((minute) => scheduledJob(at(minute), finished('Complete', at(minute))));
  const removed = (spec: Partial<CronJobSpec>, of: Job[] = jobs): string[] =>
    decided(5.5, { spec, status: last(5), jobs: of }).remove.map(({ metadata }) => metadata.name);

  test('keeps the Jobs that started last', () => {
    expect(removed({ successfulJobsHistoryLimit: 3 })).toEqual([nameAt(1), nameAt(2)]);
    expect(removed({ successfulJobsHistoryLimit: 0 })).toHaveLength(5);
    expect(removed({})).toEqual([]);
  });

  test('has a limit of its own for failed Jobs, and ignores running ones', () => {
    const failed = [6, 7].map((minute) => scheduledJob(at(minute), finished('Failed', at(minute))));
    const limits = { successfulJobsHistoryLimit: 9, failedJobsHistoryLimit: 1 };
    expect(removed(limits, [...jobs, ...failed, scheduledJob(at(0))])).toEqual([nameAt(6)]);
  });

  test('is limited while the CronJob is suspended, and does not count Jobs that are being deleted', () => {
    const deletionTimestamp = formatTime(NOW);
    const deleting = jobs.map((job) => ({ ...job, metadata: { ...job.metadata, deletionTimestamp } }));
    expect(removed({ suspend: true, successfulJobsHistoryLimit: 4 })).toEqual([nameAt(1)]);
    expect(removed({ successfulJobsHistoryLimit: 0 }, deleting)).toEqual([]);
  });
});

test.each<[string, State, number | undefined]>([
  ['the next minute', {}, 2],
  ['the next time of @every, counted from the last', { spec: { schedule: '@every 5m' }, status: last(-2) }, 3],
  ['never while it is suspended', { spec: { suspend: true } }, undefined],
  ['never while it is deleted', { metadata: { deletionTimestamp: formatTime(NOW) } }, undefined],
  ['after a last time in the future', { status: last(10) }, 11],
])('a CronJob is reconciled again at %s', (_, { spec, status, metadata }, minutes) => {
  const next = nextStart(cronJob(spec, status, metadata), at(1.5), 'UTC');
  expect(next).toBe(minutes === undefined ? undefined : at(minutes));
});
