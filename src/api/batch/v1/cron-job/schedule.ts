/** Parses the schedules of CronJobs. Source: ParseStandard of github.com/robfig/cron v3, which v1.33 uses (behavior and wording). */
import { type Millis, parseDuration } from '../../../../machinery/time.ts';

export interface ScheduleField {
  /** The values that match, in ascending order; empty for a field such as `,`, which matches nothing. */
  values: readonly number[];
  /** Whether a part of the field is `*` or `?`, without a step of more than 1. This decides how the two fields of days are combined. */
  isAny: boolean;
}

export interface Schedule {
  /** The time zone in the schedule. Validation accepts a time zone only if the old schedule of the CronJob contains one. */
  timeZone?: string;
  /** The interval of an `@every` schedule, in whole seconds expressed as milliseconds. Absent for schedules with fields. */
  every?: Millis;
  /** The minutes, hours, days of the month, months, and days of the week from Sunday, which is 0. Empty for `@every`. */
  fields: readonly ScheduleField[];
}

interface Bounds {
  min: number;
  max: number;
  names?: Readonly<Record<string, number>>;
}

const numbered = (first: number, names: string): Record<string, number> =>
  Object.fromEntries(names.split(' ').map((name, index) => [name, first + index]));

const FIELDS: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: numbered(1, 'jan feb mar apr may jun jul aug sep oct nov dec') },
  { min: 0, max: 6, names: numbered(0, 'sun mon tue wed thu fri sat') },
];
const DESCRIPTORS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const SECOND: Millis = 1000;

const quoted = (text: string): string => JSON.stringify(text);

function numberError(text: string): string | undefined {
  if (/^\+?\d+$/.test(text)) return undefined;
  if (/^-\d+$/.test(text)) return `negative number (${Number(text)}) not allowed: ${text}`;
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${quoted(text)}: invalid syntax`;
}

/** Parses a number, or a name such as `mon`. Returns an error as a text. */
function numberOf(text: string, names: Bounds['names']): number | string {
  return names?.[text.toLowerCase()] ?? numberError(text) ?? Number(text);
}

interface Range {
  start: number;
  end: number;
  step: number;
  isAny: boolean;
}

/** Parses one part of a list, such as `1-5/2`. Returns an error as a text. */
function parseRange(part: string, { min, max, names }: Bounds): Range | string {
  const [range = '', step, ...more] = part.split('/');
  const [low = '', high, ...rest] = range.split('-');
  const isAny = low === '*' || low === '?';
  const start = isAny ? min : numberOf(low, names);
  if (typeof start === 'string') return start;
  if (!isAny && rest.length > 0) return `too many hyphens: ${part}`;
  let end = isAny ? max : high === undefined ? start : numberOf(high, names);
  if (typeof end === 'string') return end;
  if (more.length > 0) return `too many slashes: ${part}`;
  const stepError = step === undefined ? undefined : numberError(step);
  if (stepError !== undefined) return stepError;
  if (step !== undefined && high === undefined) end = max;
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${part}`;
  if (end > max) return `end of range (${end}) above maximum (${max}): ${part}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${part}`;
  const by = step === undefined ? 1 : Number(step);
  if (by === 0) return `step of range should be a positive number: ${part}`;
  return { start, end, step: by, isAny: isAny && by === 1 };
}

function parseField(text: string, bounds: Bounds): ScheduleField | string {
  const values = new Set<number>();
  let isAny = false;
  // Repeated parts are parsed only once, because only the size of an object limits the length of a schedule.
  for (const part of new Set(text.split(',').filter((each) => each !== ''))) {
    const range = parseRange(part, bounds);
    if (typeof range === 'string') return range;
    isAny ||= range.isAny;
    for (let value = range.start; value <= range.end; value += range.step) values.add(value);
  }
  return { values: [...values].sort((a, b) => a - b), isAny };
}

/** Parses a schedule such as `0 5 * * mon-fri`, `@daily` or `@every 1h`. Returns an error as a text. */
export function parseSchedule(schedule: string): Schedule | string {
  const zone = /^(?:CRON_)?TZ=(\S*) ?/.exec(schedule);
  const spec = zone === null ? schedule : schedule.slice(zone[0].length).trim();
  const parsed = parseSpec(spec);
  return typeof parsed === 'string' || zone === null ? parsed : { ...parsed, timeZone: zone[1] ?? '' };
}

function parseSpec(spec: string): Schedule | string {
  if (spec === '') return 'empty spec string';
  const descriptor = DESCRIPTORS[spec];
  if (descriptor !== undefined) return parseFields(descriptor);
  if (!spec.startsWith('@')) return parseFields(spec);
  if (!spec.startsWith('@every ')) return `unrecognized descriptor: ${spec}`;
  const duration = spec.slice('@every '.length);
  const millis = parseDuration(duration);
  if (millis === undefined) return `failed to parse duration ${spec}: time: invalid duration ${quoted(duration)}`;
  return { every: Math.max(SECOND, Math.floor(millis / SECOND) * SECOND), fields: [] };
}

function parseFields(spec: string): Schedule | string {
  const texts = spec.split(/\s+/).filter((text) => text !== '');
  if (texts.length !== FIELDS.length) return `expected exactly 5 fields, found ${texts.length}: [${texts.join(' ')}]`;
  const fields: ScheduleField[] = [];
  for (const [index, bounds] of FIELDS.entries()) {
    const field = parseField(texts[index] ?? '', bounds);
    if (typeof field === 'string') return field;
    fields.push(field);
  }
  return { fields };
}

/** Returns undefined if the schedule is valid. */
export function scheduleError(schedule: string): string | undefined {
  const parsed = parseSchedule(schedule);
  return typeof parsed === 'string' ? parsed : undefined;
}
