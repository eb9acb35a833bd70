/** Parses the limits on the records of Pods' lives: --record-age and --record-size. */
import type { RecordLimits } from '../../controllers/record-limits/record-limits.ts';
import { parseQuantity } from '../../machinery/quantity.ts';
import { parseDuration } from '../../machinery/time.ts';
import { UserError } from '../../platform/files.ts';

export const DEFAULT_RECORD_AGE = '24h';
export const DEFAULT_RECORD_SIZE = '64Mi';

const MINIMUM_AGE_MILLIS = 60_000;
const MINIMUM_BYTES = 2 ** 20;
const DAY_MILLIS = 24 * 60 * 60 * 1000;

/** In milliseconds and bytes. Throws a UserError if a limit is invalid or too small. */
export function parseRecordLimits(age: string, size: string): RecordLimits {
  return { ageMillis: parseAge(age), bytes: parseSize(size) };
}

/** `text` is a number of days, a Go duration, or both, such as 7d, 24h or 1d12h. */
function parseAge(text: string): number {
  const [, days, time = ''] = /^(?:(\d+)d)?(|[\d.].*)$/.exec(text) ?? [];
  const rest = days !== undefined && time === '' ? 0 : (parseDuration(time) ?? Number.NaN);
  const millis = Number(days ?? 0) * DAY_MILLIS + rest;
  if (!Number.isSafeInteger(millis) || millis < MINIMUM_AGE_MILLIS) {
    throw new UserError(
      `--record-age ${JSON.stringify(text)} is not a valid age of records: give one minute or more, such as 30m, 24h or 7d`,
    );
  }
  return millis;
}

function parseSize(text: string): number {
  const quantity = parseQuantity(text);
  const bytes = quantity === undefined ? 0 : Number(quantity.nano / 1_000_000_000n);
  if (!Number.isSafeInteger(bytes) || bytes < MINIMUM_BYTES) {
    throw new UserError(
      `--record-size ${JSON.stringify(text)} is not a valid size of records: give 1Mi or more, such as 64Mi or 1Gi`,
    );
  }
  return bytes;
}
