/**
 * Validation of the status of Jobs. Other controllers may manage a Job, so the rules also protect the readers of the status: a finished Job
 * stays finished, for example. Most rules apply only if one of their fields changes, because a change of the spec can break a rule until
 * the controller writes the next status.
 * Source: validateJobStatus and ValidateJobStatusUpdate of pkg/apis/batch/validation, and getStatusValidationOptions of
 * pkg/registry/batch/job of v1.33 (behavior and wording).
 */
import { duplicate, type FieldError, invalid, invalidPart, required } from '../../../../machinery/field-error.ts';
import { type JsonValue, jsonEqual } from '../../../../machinery/json-value.ts';
import { IMMUTABLE_TEXT } from '../../../../machinery/object-meta.ts';
import { parseTime } from '../../../../machinery/time.ts';
import type { Job, JobSpec, JobStatus } from '../../../generated/types.ts';
import { at, nonNegative } from '../../../rules.ts';
import { commonIndex, countIndexes } from './indexes.ts';

interface State extends Omit<JobStatus, 'conditions'> {
  active: number;
  failed: number;
  succeeded: number;
  completedIndexes: string;
  isComplete: boolean;
  isFailed: boolean;
  isFinished: boolean;
  isFailing: boolean;
  isSuccessful: boolean;
  isSuspended: boolean;
}

function stateOf({ status = {} }: Job): State {
  const { conditions = [], ...fields } = status;
  const is = (name: string): boolean => conditions.some(({ type, status: value }) => type === name && value === 'True');
  return {
    ...fields,
    active: status.active ?? 0,
    failed: status.failed ?? 0,
    succeeded: status.succeeded ?? 0,
    completedIndexes: status.completedIndexes ?? '',
    isComplete: is('Complete'),
    isFailed: is('Failed'),
    isFinished: is('Complete') || is('Failed'),
    isFailing: is('FailureTarget'),
    isSuccessful: is('SuccessCriteriaMet'),
    isSuspended: is('Suspended'),
  };
}

interface Check {
  /** The check is made if the value of one of these fields changes. */
  changes: readonly (keyof State)[];
  isBroken(now: State, spec: Partial<JobSpec>): boolean;
  error(now: State): FieldError;
}

const ofField = (
  field: keyof JobStatus & keyof State,
  text: string,
  changes: readonly (keyof State)[],
  isBroken: Check['isBroken'],
): Check => ({ changes, isBroken, error: (now) => invalid(`status.${field}`, now[field], text) });

const ofAbsent = (
  field: keyof JobStatus,
  text: string,
  changes: readonly (keyof State)[],
  isBroken: Check['isBroken'],
): Check => ({ changes, isBroken, error: () => required(`status.${field}`, text) });

const ofConditions = (text: string, changes: readonly (keyof State)[], isBroken: Check['isBroken']): Check => ({
  changes,
  isBroken,
  error: () => invalidPart('status.conditions', text),
});

const beforeStart: Check['isBroken'] = ({ startTime, completionTime }) => {
  const [start, completion] = [parseTime(startTime), parseTime(completionTime)];
  return start !== undefined && completion !== undefined && completion < start;
};

const hasUncounted: Check['isBroken'] = ({ isFinished, uncountedTerminatedPods: pods }) =>
  isFinished && (pods?.failed ?? []).length + (pods?.succeeded ?? []).length > 0;

/** Checked before the indexes, in upstream's order. */
const firstChecks: readonly Check[] = [
  ofConditions(
    'cannot set Complete=True and Failed=true conditions',
    ['isComplete', 'isFailed'],
    ({ isComplete, isFailed }) => isComplete && isFailed,
  ),
  ofConditions(
    'cannot set Complete=True and FailureTarget=true conditions',
    ['isComplete', 'isFailing'],
    ({ isComplete, isFailing }) => isComplete && isFailing,
  ),
  ofField(
    'completionTime',
    'cannot set completionTime when there is no Complete=True condition',
    ['isComplete', 'completionTime'],
    ({ isComplete, completionTime }) => completionTime !== undefined && !isComplete,
  ),
  ofAbsent(
    'completionTime',
    'completionTime is required for Complete jobs',
    ['isComplete', 'completionTime'],
    ({ isComplete, completionTime }) => completionTime === undefined && isComplete,
  ),
  ofField('completionTime', 'must be equal to or after `startTime`', ['startTime', 'completionTime'], beforeStart),
  ofConditions(
    'cannot set Failed=True condition without the FailureTarget=true condition',
    ['isFailed', 'failedIndexes'],
    ({ isFailed, isFailing }) => isFailed && !isFailing,
  ),
  ofConditions(
    'cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    ['isComplete', 'isSuccessful'],
    ({ isComplete, isSuccessful }) => isComplete && !isSuccessful,
  ),
  ofField(
    'active',
    'active>0 is invalid for finished job',
    ['isFinished', 'active'],
    ({ isFinished, active }) => isFinished && active > 0,
  ),
  ofAbsent(
    'startTime',
    'startTime is required for finished job',
    ['isFinished', 'startTime'],
    ({ isFinished, startTime }) => isFinished && startTime === undefined,
  ),
  ofField(
    'uncountedTerminatedPods',
    'must be empty for finished job',
    ['isFinished', 'uncountedTerminatedPods'],
    hasUncounted,
  ),
];

/** The checks that follow the checks of the indexes' formats, in upstream's order. */
const lastChecks: readonly Check[] = [
  ofField(
    'completedIndexes',
    'cannot set non-empty completedIndexes when non-indexed completion mode',
    ['completedIndexes'],
    ({ completedIndexes }, { completionMode }) => completedIndexes !== '' && completionMode !== 'Indexed',
  ),
  ofField(
    'failedIndexes',
    'cannot set non-null failedIndexes when backoffLimitPerIndex is null',
    ['failedIndexes'],
    ({ failedIndexes }, { backoffLimitPerIndex }) => failedIndexes !== undefined && backoffLimitPerIndex === undefined,
  ),
];

const podChecks: readonly Check[] = [
  ofField(
    'terminating',
    'terminating>0 is invalid for finished job',
    ['isFinished', 'terminating'],
    ({ isFinished, terminating = 0 }) => isFinished && terminating > 0,
  ),
  ofField(
    'ready',
    'cannot set more ready pods than active',
    ['ready', 'active'],
    ({ ready = 0, active }) => ready > active,
  ),
];

const isChanged = (now: State, old: State, fields: readonly (keyof State)[]): boolean =>
  fields.some((field) => !jsonEqual((now[field] ?? null) as JsonValue, (old[field] ?? null) as JsonValue));

const checked = (checks: readonly Check[], now: State, old: State, spec: Partial<JobSpec>): FieldError[] =>
  checks
    .filter(({ changes, isBroken }) => isChanged(now, old, changes) && isBroken(now, spec))
    .map(({ error }) => error(now));

const counts = ['active', 'succeeded', 'failed', 'ready', 'terminating'].map((name) =>
  at(`status.${name}`, nonNegative),
);

function validateUncounted({ uncountedTerminatedPods: pods }: JobStatus): FieldError[] {
  const seen = new Set<string>();
  return (['succeeded', 'failed'] as const).flatMap((list) =>
    (pods?.[list] ?? []).flatMap((uid, index) => {
      const path = `status.uncountedTerminatedPods.${list}[${index}]`;
      if (uid === '') return [invalid(path, uid, 'must not be empty')];
      if (seen.has(uid)) return [duplicate(path, uid)];
      seen.add(uid);
      return [];
    }),
  );
}

function formatErrors(field: 'completedIndexes' | 'failedIndexes', text: string, completions: number): FieldError[] {
  try {
    countIndexes(text, completions);
    return [];
  } catch (error) {
    return [invalid(`status.${field}`, text, `error parsing ${field}: ${(error as Error).message}`)];
  }
}

function validateFormats(
  now: State,
  old: State,
  { completions, backoffLimitPerIndex }: Partial<JobSpec>,
): FieldError[] {
  if (completions === undefined) return [];
  const { completedIndexes, failedIndexes } = now;
  const areFailedRead = failedIndexes !== undefined && backoffLimitPerIndex !== undefined;
  return [
    ...(isChanged(now, old, ['completedIndexes'])
      ? formatErrors('completedIndexes', completedIndexes, completions)
      : []),
    ...(areFailedRead && isChanged(now, old, ['failedIndexes'])
      ? formatErrors('failedIndexes', failedIndexes, completions)
      : []),
  ];
}

function validateOverlap(now: State, old: State, { completions }: Partial<JobSpec>): FieldError[] {
  const { completedIndexes, failedIndexes = '' } = now;
  if (completions === undefined || !isChanged(now, old, ['failedIndexes', 'completedIndexes'])) return [];
  const index = commonIndex(completedIndexes, failedIndexes, completions);
  return index === undefined
    ? []
    : [invalid('status.failedIndexes', failedIndexes, `failedIndexes and completedIndexes overlap at index: ${index}`)];
}

function validateSuccess(
  { isSuccessful, isFailed, isFailing, isComplete }: State,
  spec: Partial<JobSpec>,
): FieldError[] {
  const texts: (string | false)[] = [
    isSuccessful && isFailed && 'cannot set SuccessCriteriaMet=True and Failed=true conditions',
    isSuccessful && isFailing && 'cannot set SuccessCriteriaMet=True and FailureTarget=true conditions',
    spec.successPolicy !== undefined &&
      isComplete &&
      !isSuccessful &&
      'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True',
  ];
  return texts.filter((text) => text !== false).map((text) => invalidPart('status.conditions', text));
}

const TERMINAL = [
  ['Failed', 'isFailed'],
  ['Complete', 'isComplete'],
  ['FailureTarget', 'isFailing'],
] as const;

function validateTransition(now: State, old: State, spec: Partial<JobSpec>): FieldError[] {
  const errors = TERMINAL.filter(([, is]) => old[is] && !now[is]).map(([type]) =>
    invalidPart('status.conditions', `cannot disable the terminal ${type}=True condition`),
  );
  if (now.failed < old.failed) errors.push(invalid('status.failed', now.failed, 'cannot decrease the failed counter'));
  // An indexed Job with as many completions as parallel Pods can be scaled down, which may decrease the number of succeeded Pods.
  const isScalable = spec.completionMode === 'Indexed' && spec.completions === spec.parallelism;
  if (!isScalable && now.succeeded < old.succeeded)
    errors.push(invalid('status.succeeded', now.succeeded, 'cannot decrease the succeeded counter'));
  const { completionTime, startTime } = now;
  if (completionTime !== undefined && old.completionTime !== undefined && completionTime !== old.completionTime)
    errors.push(invalid('status.completionTime', completionTime, IMMUTABLE_TEXT));
  // A Job that is resumed gets a new start time.
  const isRestarted = startTime !== undefined && old.isSuspended && !now.isSuspended;
  if (old.startTime !== undefined && startTime !== old.startTime && spec.suspend !== true && !isRestarted)
    errors.push(required('status.startTime', 'startTime cannot be removed for unsuspended job'));
  if (old.isSuccessful && !now.isSuccessful)
    errors.push(invalidPart('status.conditions', 'cannot disable the SuccessCriteriaMet=True condition'));
  if (old.isComplete && !old.isSuccessful && now.isSuccessful) {
    const text = 'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions';
    errors.push(invalidPart('status.conditions', text));
  }
  return errors;
}

export function validateJobStatus(job: Job, oldJob: Job): FieldError[] {
  const [now, old] = [stateOf(job), stateOf(oldJob)];
  const spec: Partial<JobSpec> = job.spec ?? {};
  return [
    ...counts.flatMap((rule) => rule(job)),
    ...validateUncounted(job.status ?? {}),
    ...checked(firstChecks, now, old, spec),
    ...validateFormats(now, old, spec),
    ...checked(lastChecks, now, old, spec),
    ...validateOverlap(now, old, spec),
    ...checked(podChecks, now, old, spec),
    ...validateSuccess(now, spec),
    ...validateTransition(now, old, spec),
  ];
}
