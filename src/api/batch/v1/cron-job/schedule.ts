/**
 * Checks the schedules of CronJobs.
 * Source: ParseStandard of github.com/robfig/cron v3, which v1.33 uses (behavior and wording).
 */
import { parseDuration } from '../../../../machinery/time.ts';

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
const DESCRIPTORS = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly']);

const quoted = (text: string): string => JSON.stringify(text);

function numberError(text: string): string | undefined {
  if (/^\+?\d+$/.test(text)) return undefined;
  if (/^-\d+$/.test(text)) return `negative number (${Number(text)}) not allowed: ${text}`;
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${quoted(text)}: invalid syntax`;
}

/** Returns the number, or the error in the text. */
function numberOf(text: string, names: Bounds['names']): number | string {
  return names?.[text.toLowerCase()] ?? numberError(text) ?? Number(text);
}

/** Returns the error in one part of a list, such as `1-5/2`. */
function rangeError(part: string, { min, max, names }: Bounds): string | undefined {
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
  return step !== undefined && Number(step) === 0 ? `step of range should be a positive number: ${part}` : undefined;
}

/** Returns the error in a schedule such as `0 5 * * mon-fri`, `@daily` or `@every 1h`; undefined if it is valid. */
export function scheduleError(schedule: string): string | undefined {
  let spec = schedule;
  const zone = /^(?:CRON_)?TZ=(\S*) ?/.exec(spec);
  if (zone !== null) spec = spec.slice(zone[0].length).trim();
  if (spec === '') return 'empty spec string';
  if (spec.startsWith('@')) {
    if (DESCRIPTORS.has(spec)) return undefined;
    if (!spec.startsWith('@every ')) return `unrecognized descriptor: ${spec}`;
    const duration = spec.slice('@every '.length);
    if (parseDuration(duration) !== undefined) return undefined;
    return `failed to parse duration ${spec}: time: invalid duration ${quoted(duration)}`;
  }
  const fields = spec.split(/\s+/).filter((field) => field !== '');
  if (fields.length !== FIELDS.length)
    return `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`;
  for (const [index, bounds] of FIELDS.entries())
    for (const part of (fields[index] ?? '').split(',').filter((each) => each !== '')) {
      const error = rangeError(part, bounds);
      if (error !== undefined) return error;
    }
  return undefined;
}
