/** Parses the option --grace-period. Every command loads this module to define its options. */
import { InvalidArgumentError } from 'commander';

/** The longest grace period that is accepted, about 68 years. Dates that are computed from it are valid in JavaScript. */
const MOST_SECONDS = 2 ** 31 - 1;

export function parseGracePeriod(text: string): number {
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= MOST_SECONDS) return seconds;
  throw new InvalidArgumentError('give whole seconds, such as 30.');
}
