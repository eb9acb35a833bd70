import { expect, it, test } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { Job } from '../../../generated/types.ts';
import { created } from '../../../testing.ts';
import { jobKind } from './index.ts';

const template = { spec: { containers: [{ name: 'app', image: 'busybox:1.28' }], restartPolicy: 'Never' } };
const START = '2026-01-31T12:00:00Z';
const LATER = '2026-01-31T12:01:00Z';

const jobOf = (spec: object, status: object): Job => {
  const { object } = created(jobKind, { metadata: { uid: 'u' }, spec: { template, ...spec } });
  return { ...object, metadata: { ...object.metadata, resourceVersion: '1' }, status };
};
const errorsOf = (old: object, now: object, spec: object = {}): string[] =>
  (jobKind.subresources['status']?.validate?.(jobOf(spec, now), jobOf(spec, old)) ?? []).map(fieldErrorText);

const conditions = (...types: string[]) => ({ conditions: types.map((type) => ({ type, status: 'True' })) });
const running = { startTime: START, active: 1 };
const complete = {
  startTime: START,
  completionTime: LATER,
  succeeded: 1,
  ...conditions('SuccessCriteriaMet', 'Complete'),
};
const failed = { startTime: START, failed: 1, ...conditions('FailureTarget', 'Failed') };
const indexed = { completionMode: 'Indexed', completions: 5, parallelism: 2 };
const CONDITIONS = 'status.conditions: Invalid value: cannot';

test.each<[string, object, object]>([
  ['starts', {}, running],
  ['completes', running, complete],
  ['fails', running, failed],
  ['is resumed and starts again', { ...running, ...conditions('Suspended') }, { startTime: LATER, active: 1 }],
  ['is suspended and loses its start', { ...running, ...conditions('Suspended') }, { active: 0 }],
])('the status of a Job that %s is valid', (name, old, now) => {
  expect(errorsOf(old, now, { suspend: name.startsWith('is suspended') })).toEqual([]);
});

test.each<[string, object, object, string[]]>([
  [
    'negative counters',
    {},
    { active: -1, ready: -2, terminating: -3 },
    [
      'status.active: Invalid value: -1: must be greater than or equal to 0',
      'status.ready: Invalid value: -2: must be greater than or equal to 0',
      'status.terminating: Invalid value: -3: must be greater than or equal to 0',
    ],
  ],
  [
    'Pods that are counted twice',
    {},
    { uncountedTerminatedPods: { succeeded: ['a', ''], failed: ['a'] } },
    [
      'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
      'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
    ],
  ],
  [
    'both results',
    running,
    { ...complete, ...conditions('SuccessCriteriaMet', 'Complete', 'FailureTarget', 'Failed') },
    [
      `${CONDITIONS} set Complete=True and Failed=true conditions`,
      `${CONDITIONS} set Complete=True and FailureTarget=true conditions`,
      `${CONDITIONS} set SuccessCriteriaMet=True and Failed=true conditions`,
      `${CONDITIONS} set SuccessCriteriaMet=True and FailureTarget=true conditions`,
    ],
  ],
  [
    'a completion time without completion',
    running,
    { ...running, completionTime: LATER },
    [
      `status.completionTime: Invalid value: "${LATER}": cannot set completionTime when there is no Complete=True condition`,
    ],
  ],
  [
    'completion without the conditions for it',
    {},
    { active: 1, terminating: 1, uncountedTerminatedPods: { failed: ['a'] }, ...conditions('Complete') },
    [
      'status.completionTime: Required value: completionTime is required for Complete jobs',
      `${CONDITIONS} set Complete=True condition without the SuccessCriteriaMet=true condition`,
      'status.active: Invalid value: 1: active>0 is invalid for finished job',
      'status.startTime: Required value: startTime is required for finished job',
      'status.uncountedTerminatedPods: Invalid value: {"failed":["a"]}: must be empty for finished job',
      'status.terminating: Invalid value: 1: terminating>0 is invalid for finished job',
    ],
  ],
  [
    'another start without a suspension',
    running,
    { ...running, startTime: LATER },
    ['status.startTime: Required value: startTime cannot be removed for unsuspended job'],
  ],
  [
    'a start that is lost when the Job is resumed',
    { ...running, ...conditions('Suspended') },
    { active: 1 },
    ['status.startTime: Required value: startTime cannot be removed for unsuspended job'],
  ],
  [
    'completion before the start',
    running,
    { ...complete, startTime: LATER, completionTime: START },
    [
      `status.completionTime: Invalid value: "${START}": must be equal to or after \`startTime\``,
      'status.startTime: Required value: startTime cannot be removed for unsuspended job',
    ],
  ],
  [
    'failure without its cause',
    running,
    { ...failed, ...conditions('Failed') },
    [`${CONDITIONS} set Failed=True condition without the FailureTarget=true condition`],
  ],
  [
    'more Pods ready than active',
    running,
    { ...running, ready: 2 },
    ['status.ready: Invalid value: 2: cannot set more ready pods than active'],
  ],
  [
    'indexes of a Job without indexes',
    running,
    { ...running, completedIndexes: '0', failedIndexes: '' },
    [
      'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
      'status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null',
    ],
  ],
  [
    'a final result that is taken back',
    complete,
    running,
    [
      `${CONDITIONS} disable the terminal Complete=True condition`,
      'status.succeeded: Invalid value: 0: cannot decrease the succeeded counter',
      `${CONDITIONS} disable the SuccessCriteriaMet=True condition`,
    ],
  ],
  [
    'a failure that is taken back',
    failed,
    running,
    [
      `${CONDITIONS} disable the terminal Failed=True condition`,
      `${CONDITIONS} disable the terminal FailureTarget=True condition`,
      'status.failed: Invalid value: 0: cannot decrease the failed counter',
    ],
  ],
  [
    'another completion time',
    complete,
    { ...complete, completionTime: '2026-01-31T13:00:00Z' },
    ['status.completionTime: Invalid value: "2026-01-31T13:00:00Z": field is immutable'],
  ],
  [
    'success after completion',
    { ...complete, ...conditions('Complete') },
    complete,
    [`${CONDITIONS} set SuccessCriteriaMet=True for Job already has Complete=true conditions`],
  ],
])('the rules for the status of a Job with %s', (_, old, now, errors) => {
  expect(errorsOf(old, now)).toEqual(errors);
});

const perIndex = { ...indexed, backoffLimitPerIndex: 1 };

test.each<[string, object, object, string[]]>([
  ['valid indexes', perIndex, { completedIndexes: '0,2-3', failedIndexes: '1,4' }, []],
  [
    'indexes that cannot be parsed',
    perIndex,
    { completedIndexes: '1,1', failedIndexes: '5' },
    [
      'status.completedIndexes: Invalid value: "1,1": error parsing completedIndexes: non-increasing order, previous: 1, current: 1',
      'status.failedIndexes: Invalid value: "5": error parsing failedIndexes: too large index: "5"',
    ],
  ],
  [
    'indexes that completed and failed',
    perIndex,
    { completedIndexes: '0,2-4', failedIndexes: '1,3' },
    ['status.failedIndexes: Invalid value: "1,3": failedIndexes and completedIndexes overlap at index: 3'],
  ],
  [
    'completion before the criteria of its policy are met',
    { ...indexed, successPolicy: { rules: [{ succeededCount: 1 }] } },
    { ...complete, ...conditions('Complete') },
    [
      `${CONDITIONS} set Complete=True condition without the SuccessCriteriaMet=true condition`,
      `${CONDITIONS} set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True`,
    ],
  ],
])('the rules for the status of an indexed Job with %s', (_, spec, now, errors) => {
  expect(errorsOf({ startTime: START }, { startTime: START, ...now }, spec)).toEqual(errors);
});

it('the succeeded counter of an indexed Job may decrease only if the Job can be scaled down', () => {
  expect(errorsOf({ succeeded: 2 }, { succeeded: 1 }, { ...indexed, parallelism: 5 })).toEqual([]);
  expect(errorsOf({ succeeded: 2 }, { succeeded: 1 }, indexed)).toEqual([
    'status.succeeded: Invalid value: 1: cannot decrease the succeeded counter',
  ]);
});

it('a status that breaks a rule already may be written if the fields of the rule stay the same', () => {
  const broken = { ...conditions('Complete'), active: 1, completedIndexes: '9' };
  expect(errorsOf(broken, { ...broken, succeeded: 1 })).toEqual([]);
});
