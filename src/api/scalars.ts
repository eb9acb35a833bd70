/**
 * Scalar types of the API that JSON lacks: times, bytes and quantities. The canonical functions convert a client's value to the form in
 * which the value is stored and served, or return upstream's error text.
 * Source: metav1.Time, metav1.MicroTime, []byte and resource.Quantity of v1.33 (behavior and wording).
 */
import { canonicalQuantity, formatQuantity, quantityOrZero, roundToMilli } from '../machinery/quantity.ts';
import {
  formatDuration,
  formatTime,
  isWritableTime,
  type Millis,
  parseDuration,
  parseTime,
} from '../machinery/time.ts';

export type ScalarResult = { value: string } | { error: string };

const timePattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/;
/** The elements of Go's time layout, and the texts that each element matches. Go's errors quote the first element without a match. */
const layout: readonly (readonly [string, RegExp])[] = [
  ['2006', /^\d{4}/],
  ['-', /^-/],
  ['01', /^(0[1-9]|1[0-2])/],
  ['-', /^-/],
  ['02', /^(0[1-9]|[12]\d|3[01])/],
  ['T', /^T/],
  ['15', /^([01]\d|2[0-3])/],
  [':', /^:/],
  ['04', /^[0-5]\d/],
  [':', /^:/],
  ['05', /^[0-5]\d(\.\d+)?/],
  ['Z07:00', /^(Z|[+-]\d\d:\d\d)/],
];

function timeError(text: string): string {
  const start = `parsing time ${JSON.stringify(text)}`;
  let rest = text;
  for (const [element, pattern] of layout) {
    const match = pattern.exec(rest);
    if (match === null) {
      return `${start} as "2006-01-02T15:04:05Z07:00": cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(element)}`;
    }
    rest = rest.slice(match[0].length);
  }
  if (rest === '' && instantOf(text) !== undefined) return `${start}: year outside of range [0,9999]`;
  return rest === '' ? `${start}: day out of range` : `${start}: extra text: ${JSON.stringify(rest)}`;
}

interface Instant {
  millis: Millis;
  fraction: string;
}

/** Parses an RFC 3339 time; undefined if the text has another format, or if the day or the time of day does not exist. */
function instantOf(text: string): Instant | undefined {
  const match = timePattern.exec(text);
  if (match === null) return undefined;
  const [, local = '', fraction = '', zone = ''] = match;
  // Date.parse() converts a day that does not exist to an existing one, such as 31 February to 3 March.
  const asUtc = parseTime(`${local}Z`);
  if (asUtc === undefined || formatTime(asUtc) !== `${local}Z`) return undefined;
  const millis = parseTime(`${local}${zone}`);
  return millis === undefined ? undefined : { millis, fraction };
}

/**
 * Returns the whole seconds of the time in UTC, without the zone, and the digits of its fraction; undefined if the text is not a time, or
 * if its year in UTC is outside of 0 to 9999.
 */
function secondsOf(text: string): { seconds: string; fraction: string } | undefined {
  const instant = instantOf(text);
  if (instant === undefined || !isWritableTime(instant.millis)) return undefined;
  return { seconds: formatTime(instant.millis).slice(0, 19), fraction: instant.fraction };
}

const canonicalTimePattern = /^(\d{4})-(0[1-9]|1[0-2])-(\d\d)T(?:[01]\d|2[0-3])(?::[0-5]\d){2}Z$/;

/** Whether the time is already in the served form. Avoids Date, which is slow, because objects contain many times. */
function isCanonicalTime(text: string): boolean {
  const match = canonicalTimePattern.exec(text);
  if (match === null) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return day >= 1 && day <= days;
}

/** Returns upstream's message about a text that is not an RFC 3339 time; undefined if the text is one. */
export const timeProblem = (text: string): string | undefined =>
  secondsOf(text) === undefined ? timeError(text) : undefined;

/** Converts a metav1.Time to UTC, and drops fractions of a second. */
export function canonicalTime(text: string): ScalarResult {
  if (isCanonicalTime(text)) return { value: text };
  const time = secondsOf(text);
  return time === undefined ? { error: timeError(text) } : { value: `${time.seconds}Z` };
}

/** Converts a metav1.MicroTime to UTC, with six fractional digits. */
export function canonicalMicroTime(text: string): ScalarResult {
  const time = secondsOf(text);
  return time === undefined
    ? { error: timeError(text) }
    : { value: `${time.seconds}.${time.fraction.slice(0, 6).padEnd(6, '0')}Z` };
}

/** Checks that the text is standard base64 with padding, and removes line breaks. */
export function canonicalBytes(text: string): ScalarResult {
  const plain = /[\r\n]/.test(text) ? text.replaceAll(/[\r\n]/g, '') : text;
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(plain) && plain.length % 4 === 0) return { value: plain };
  const bad = plain.search(/[^A-Za-z0-9+/]/);
  return { error: `illegal base64 data at input byte ${bad >= 0 ? bad : plain.length - (plain.length % 4)}` };
}

/** Checks a Go duration such as 1m30s, and converts it to the form in which Go writes it. */
export function canonicalDuration(text: string): ScalarResult {
  const millis = parseDuration(text);
  if (millis === undefined) return { error: `time: invalid duration ${JSON.stringify(text)}` };
  return { value: formatDuration(millis) };
}

const quantityPattern = '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$';
/** Matches the same texts as `quantityPattern`, which takes quadratic time for texts of many digits. */
const quantityRegexp = /^[+-]?[0-9.]+(?:(?:[eEinumkKMGTP]+[-+]?|[-+])[0-9]*)?$/;

export function canonicalQuantityValue(input: string | number): ScalarResult {
  const value = canonicalQuantity(input);
  if (value !== undefined) return { value };
  return quantityRegexp.test(String(input))
    ? { error: "unable to parse quantity's suffix" }
    : { error: `quantities must match the regular expression '${quantityPattern}'` };
}

/** Matches the canonical texts that may be finer than a thousandth. */
const fineQuantityRegexp = /[nu]$|e-/;

/**
 * Like canonicalQuantityValue(), for an amount in a list of resources, such as `limits`, which is rounded to thousandths. Source:
 * SetDefaults_ResourceList of pkg/apis/core/v1 of v1.33.
 */
export function canonicalAmount(input: string | number): ScalarResult {
  const result = canonicalQuantityValue(input);
  if (!('value' in result) || !fineQuantityRegexp.test(result.value)) return result;
  return { value: formatQuantity(roundToMilli(quantityOrZero(result.value))) };
}
