/** Validation of CronJobs. Source: pkg/apis/batch/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import { validateAnnotations, validateLabels } from '../../../../machinery/object-meta.ts';
import type { CronJob, CronJobSpec } from '../../../generated/types.ts';
import { at, nonNegative } from '../../../rules.ts';
import { validateSharedSpec } from '../job/spec.ts';
import { scheduleError } from './schedule.ts';

const MAX_NAME_CHARACTERS = 52;
const POLICIES = ['Allow', 'Forbid', 'Replace'];

/** Validates the schedule. `old`: the object that is replaced, whose schedule may have a time zone. */
function validateSchedule({ schedule, timeZone }: CronJobSpec, old: CronJob | undefined): FieldError[] {
  const path = 'spec.schedule';
  if (!schedule) return [required(path)];
  const error = scheduleError(schedule);
  const errors = error === undefined ? [] : [invalid(path, schedule, error)];
  if (!schedule.includes('TZ')) return errors;
  if (timeZone !== undefined)
    errors.push(invalid(path, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'));
  else if (old?.spec?.schedule !== schedule)
    errors.push(invalid(path, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'));
  return errors;
}

function validateTimeZone({ timeZone }: CronJobSpec, old: CronJob | undefined): FieldError[] {
  const path = 'spec.timeZone';
  if (timeZone === undefined || (old !== undefined && old.spec?.timeZone === timeZone)) return [];
  if (timeZone === '') return [invalid(path, timeZone, 'timeZone must be nil or non-empty string')];
  if (timeZone.toLowerCase() === 'local')
    return [
      invalid(path, timeZone, 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'),
    ];
  return isKnownZone(timeZone) ? [] : [invalid(path, timeZone, `unknown time zone ${timeZone}`)];
}

function isKnownZone(timeZone: string): boolean {
  // Intl also accepts offsets such as +01:00, which are not names of time zones.
  if (!/^[A-Za-z]/.test(timeZone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}

function validatePolicy({ concurrencyPolicy }: CronJobSpec): FieldError[] {
  const path = 'spec.concurrencyPolicy';
  if (!concurrencyPolicy) return [required(path)];
  return POLICIES.includes(concurrencyPolicy) ? [] : [notSupported(path, concurrencyPolicy, POLICIES)];
}

function validateJobTemplate({ jobTemplate }: CronJobSpec, old: CronJob | undefined): FieldError[] {
  const path = 'spec.jobTemplate';
  const { metadata, spec } = jobTemplate ?? {};
  return allErrors(
    validateLabels(metadata?.labels, `${path}.labels`),
    validateAnnotations(metadata?.annotations, `${path}.annotations`),
    spec === undefined ? [] : validateSharedSpec(spec, old?.spec?.jobTemplate?.spec, `${path}.spec`),
    spec?.selector === undefined
      ? []
      : [invalid(`${path}.spec.selector`, spec.selector, '`selector` will be auto-generated')],
    spec?.manualSelector === true
      ? [notSupported(`${path}.spec.manualSelector`, spec.manualSelector, ['nil', 'false'])]
      : [],
  );
}

const numbers = ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit'].map((name) =>
  at(`spec.${name}`, nonNegative),
);

export function validateCronJob(cronJob: CronJob, old?: CronJob): FieldError[] {
  const { metadata, spec } = cronJob;
  const [deadline, ...limits] = numbers.map((rule) => rule(cronJob));
  return allErrors(
    spec === undefined ? [] : validateSchedule(spec, old),
    deadline ?? [],
    spec === undefined ? [] : validateTimeZone(spec, old),
    spec === undefined ? [] : validatePolicy(spec),
    spec === undefined ? [] : validateJobTemplate(spec, old),
    ...limits,
    old === undefined && metadata.name.length > MAX_NAME_CHARACTERS
      ? [invalid('metadata.name', metadata.name, `must be no more than ${MAX_NAME_CHARACTERS} characters`)]
      : [],
  );
}
