/** Validation of CronJobs. Source: pkg/apis/batch/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import type { CronJob, CronJobSpec } from '../../../generated/types.ts';
import { at, nonNegative } from '../../../rules.ts';
import { validateSharedSpec } from '../job/spec.ts';
import { scheduleError } from './schedule.ts';
import { isTimeZone } from './time-zones.ts';

const MAX_NAME_CHARACTERS = 52;
const POLICIES = ['Allow', 'Forbid', 'Replace'];

/** `old`: the object that is replaced; undefined on create. */
function validateSchedule({ schedule, timeZone }: CronJobSpec, old: CronJob | undefined): FieldError[] {
  const path = 'spec.schedule';
  if (!schedule) return [required(path)];
  const error = scheduleError(schedule);
  const errors = error === undefined ? [] : [invalid(path, schedule, error)];
  if (!schedule.includes('TZ')) return errors;
  if (old?.spec?.schedule?.includes('TZ') !== true)
    errors.push(invalid(path, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'));
  else if (timeZone !== undefined)
    errors.push(invalid(path, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'));
  return errors;
}

function validateTimeZone({ timeZone }: CronJobSpec, old: CronJob | undefined): FieldError[] {
  const path = 'spec.timeZone';
  if (timeZone === undefined || (old !== undefined && old.spec?.timeZone === timeZone)) return [];
  if (timeZone === '') return [invalid(path, timeZone, 'timeZone must be nil or non-empty string')];
  const unknown = `unknown time zone ${timeZone}`;
  if (timeZone.split('/').some((part) => !isZonePart(part))) return [invalid(path, timeZone, unknown)];
  const errors =
    timeZone.toLowerCase() === 'local'
      ? [
          invalid(
            path,
            timeZone,
            'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
          ),
        ]
      : [];
  return timeZone === 'Local' || isTimeZone(timeZone) ? errors : [...errors, invalid(path, timeZone, unknown)];
}

const isZonePart = (part: string): boolean =>
  /^[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}$/.test(part) && !/^\.\.?$/.test(part);

function validatePolicy({ concurrencyPolicy }: CronJobSpec): FieldError[] {
  const path = 'spec.concurrencyPolicy';
  if (!concurrencyPolicy) return [required(path)];
  return POLICIES.includes(concurrencyPolicy) ? [] : [notSupported(path, concurrencyPolicy, POLICIES)];
}

function validateJobTemplate({ jobTemplate }: CronJobSpec, old: CronJob | undefined): FieldError[] {
  const path = 'spec.jobTemplate';
  const { spec } = jobTemplate ?? {};
  return allErrors(
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
