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

it('the template of a CronJob gets the defaults of its policy for failures, but not those of a Job', () => {
  const podFailurePolicy = { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] };
  const { object, errors } = created(cronJobKind, cronJob({ jobTemplate: { spec: { template, podFailurePolicy } } }));
  expect(errors).toEqual([]);
  const { podFailurePolicy: policy, backoffLimit } = object.spec?.jobTemplate.spec ?? {};
  expect(policy?.rules[0]?.onPodConditions).toEqual([{ type: 'DisruptionTarget', status: 'True' }]);
  expect(backoffLimit).toBeUndefined();
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
    [`spec.schedule: Invalid value: "${TZ}": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`],
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
  [
    'the time zone of the server',
    { timeZone: 'Local' },
    [
      'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
    ],
  ],
  [
    'a time zone whose name has an invalid part',
    { timeZone: 'Etc/../UTC' },
    ['spec.timeZone: Invalid value: "Etc/../UTC": unknown time zone Etc/../UTC'],
  ],
  [
    'labels of Jobs that only the Jobs are checked for',
    { jobTemplate: { ...jobTemplate, metadata: { labels: { 'a b': '' } } } },
    [],
  ],
  ['a known time zone', { timeZone: 'Europe/Berlin' }, []],
  ['a time zone with another name in Intl', { timeZone: 'Asia/Kolkata' }, []],
  ['the abbreviation of a time zone', { timeZone: 'EST5EDT' }, []],
  ...['europe/berlin', 'EUROPE/BERLIN', 'asia/kolkata', 'Us/Pacific', 'utc'].map(
    (timeZone): [string, object, string[]] => [
      `the name of a time zone in wrong case: ${timeZone}`,
      { timeZone },
      [`spec.timeZone: Invalid value: "${timeZone}": unknown time zone ${timeZone}`],
    ],
  ),
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

const stored = (spec: object = {}) => ({ ...created(cronJobKind, cronJob(spec)).object }) as never;
const ZONE_WARNING =
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details';

it('an update may keep or change a time zone in the schedule, with a warning, but not set both time zones', () => {
  const old = stored({ schedule: TZ });
  const { object, errors } = updated(cronJobKind, old, old);
  expect([object.metadata.generation, errors]).toEqual([1, []]);
  expect(cronJobKind.warnings?.(object, old)).toEqual([ZONE_WARNING]);
  expect(updated(cronJobKind, old, cronJob({ schedule: 'CRON_TZ=Etc/UTC 0 5 * * *' })).errors).toEqual([]);
  expect(updated(cronJobKind, old, cronJob({ schedule: TZ, timeZone: 'Etc/UTC' })).errors).toEqual([
    `spec.schedule: Invalid value: "${TZ}": cannot use both timeZone field and TZ or CRON_TZ in schedule`,
  ]);
});

it('an update increments the generation if the spec changes', () => {
  const { object } = updated(cronJobKind, cronJob(), cronJob({ schedule: '0 6 * * *' }));
  expect(object.metadata.generation).toBe(2);
  expect(cronJobKind.warnings?.(object, stored())).toEqual([]);
});

it('a new CronJob warns about a name that is not a DNS label, and about very many completions of its Jobs', () => {
  const many = { template, completionMode: 'Indexed', completions: 100_001, parallelism: 10_001 };
  const { object } = created(cronJobKind, {
    ...cronJob({ jobTemplate: { spec: many } }),
    metadata: { name: 'a.b' },
  });
  expect(cronJobKind.warnings?.(object)).toEqual([
    'metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]',
    expect.stringMatching(/^spec\.jobTemplate\.spec: In Indexed Jobs with a number of completions higher than 10\^5/),
  ]);
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
