import { expect, it, test } from 'vitest';
import { created, headings, NOW, row, updated } from '../../../testing.ts';
import { cronJobKind } from './index.ts';
import { scheduleError } from './schedule.ts';

const template = { spec: { containers: [{ name: 'app', image: 'busybox:1.28' }], restartPolicy: 'Never' } };
const jobTemplate = { spec: { template } };
const cronJob = (spec: object = {}) => ({ spec: { schedule: '0 5 * * *', jobTemplate, ...spec } });

it('a new CronJob gets its defaults', () => {
  const { object, errors } = created(cronJobKind, {
    ...cronJob(),
    status: { lastScheduleTime: '2026-01-31T12:00:00Z' },
  });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({
    metadata: { generation: 1 },
    spec: { concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 },
  });
  expect(object.status).toEqual({});
});

test.each<[string, string | undefined]>([
  ['*/5 0-6,12 1 jan-MAR mon', undefined],
  ['5/15 ? * * ?', undefined],
  ['@daily', undefined],
  ['@every 1h30m', undefined],
  ['@every day', 'failed to parse duration @every day: time: invalid duration "day"'],
  ['@often', 'unrecognized descriptor: @often'],
  ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
  ['60 * * * *', 'end of range (60) above maximum (59): 60'],
  ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
  ['5-3 * * * *', 'beginning of range (5) beyond end of range (3): 5-3'],
  ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
  ['*/2/3 * * * *', 'too many slashes: */2/3'],
  ['*/0 * * * *', 'step of range should be a positive number: */0'],
  ['a * * * *', 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'],
])('the schedule %s has the error %s', (schedule, error) => {
  expect(scheduleError(schedule)).toBe(error);
});

const TZ = 'TZ=UTC 0 5 * * *';

test.each<[string, object, unknown[]]>([
  ['no schedule', { schedule: '' }, ['spec.schedule: Required value']],
  [
    'a time zone in the schedule',
    { schedule: TZ },
    [`spec.schedule: Invalid value: "${TZ}": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`],
  ],
  [
    'two time zones',
    { schedule: TZ, timeZone: 'Etc/UTC' },
    [`spec.schedule: Invalid value: "${TZ}": cannot use both timeZone field and TZ or CRON_TZ in schedule`],
  ],
  [
    'an empty time zone',
    { timeZone: '' },
    ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
  ],
  [
    'an unknown time zone',
    { timeZone: 'Odd/Zone' },
    ['spec.timeZone: Invalid value: "Odd/Zone": unknown time zone Odd/Zone'],
  ],
  ['a known time zone', { timeZone: 'Europe/Berlin' }, []],
  [
    'an unknown policy and negative numbers',
    { concurrencyPolicy: 'Odd', startingDeadlineSeconds: -1, failedJobsHistoryLimit: -1 },
    [
      'spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.concurrencyPolicy: Unsupported value: "Odd": supported values: "Allow", "Forbid", "Replace"',
      'spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  [
    'a manual selector',
    { jobTemplate: { spec: { template, manualSelector: true, selector: { matchLabels: { a: 'b' } } } } },
    [
      'spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be auto-generated',
      'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
    ],
  ],
  [
    'an invalid template',
    {
      jobTemplate: {
        spec: { template: { spec: { ...template.spec, deferContainers: [{ name: 'd', trigger: 'Odd' }] } } },
      },
    },
    [expect.stringMatching(/^spec\.jobTemplate\.spec\.template\.spec\.deferContainers\[0\]\./), expect.anything()],
  ],
])('the rules for a CronJob with %s', (_, spec, errors) => {
  expect(created(cronJobKind, cronJob(spec)).errors).toEqual(errors);
});

it('the name of a new CronJob leaves room for the names of its Jobs', () => {
  const name = 'a'.repeat(53);
  expect(created(cronJobKind, { ...cronJob(), metadata: { name } }).errors).toEqual([
    `metadata.name: Invalid value: "${name}": must be no more than 52 characters`,
  ]);
});

it('an update keeps a time zone in the schedule, and increments the generation if the spec changes', () => {
  const old = cronJob({ schedule: TZ });
  expect(updated(cronJobKind, old, old)).toMatchObject({ errors: [], object: { metadata: { generation: 1 } } });
  expect(updated(cronJobKind, old, cronJob()).object.metadata.generation).toBe(2);
});

it('the table of CronJobs has the columns of v1.33', () => {
  expect(cronJobKind.shortNames).toEqual(['cj']);
  expect(headings(cronJobKind).all).toBe(
    'NAME | SCHEDULE | TIMEZONE | SUSPEND | ACTIVE | LAST SCHEDULE | AGE | CONTAINERS | IMAGES | SELECTOR',
  );
  const status = { active: [{}], lastScheduleTime: new Date(NOW - 60_000).toISOString() };
  expect(row(cronJobKind, { ...cronJob({ timeZone: 'Etc/UTC' }), status })).toEqual([
    'a',
    '0 5 * * *',
    'Etc/UTC',
    'False',
    1,
    '60s',
    '<unknown>',
    'app',
    'busybox:1.28',
    '<none>',
  ]);
});
