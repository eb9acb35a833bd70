/**
 * Parses texts that name indexes of a Job, such as `0,2-4`.
 * Source: validateIndexesFormat and validateFailedIndexesNotOverlapCompleted of pkg/apis/batch/validation of v1.33 (behavior and wording).
 */

type Interval = readonly [first: number, last: number];

function indexOf(part: string, completions: number): number {
  if (!/^[+-]?\d+$/.test(part)) throw new Error(`cannot convert string to integer for index: ${JSON.stringify(part)}`);
  if (Number(part) >= completions) throw new Error(`too large index: ${JSON.stringify(part)}`);
  return Number(part);
}

function requireIncrease(previous: number, current: number): void {
  if (previous >= current) throw new Error(`non-increasing order, previous: ${previous}, current: ${current}`);
}

/** Parses an index or an interval, such as `2-4`. Throws an Error with upstream's message if the text is invalid. */
function intervalOf(text: string, completions: number): Interval {
  const parts = text.split('-');
  if (parts.length > 2)
    throw new Error(
      `the fragment ${JSON.stringify(text)} violates the requirement that an index interval can have at most two parts separated by '-'`,
    );
  const [first = 0, last = first] = parts.map((part) => indexOf(part, completions));
  if (parts.length > 1) requireIncrease(first, last);
  return [first, last];
}

const partsOf = (text: string): string[] => (text === '' ? [] : text.split(','));

/** Returns how many indexes the text names. Throws an Error with upstream's message if the text is invalid. */
export function countIndexes(text: string, completions: number): number {
  let count = 0;
  let end = -1;
  for (const part of partsOf(text)) {
    const [first, last] = intervalOf(part, completions);
    requireIncrease(end, first);
    count += last - first + 1;
    end = last;
  }
  return count;
}

/** Omits invalid intervals, which countIndexes() reports. */
const validIntervals = (text: string, completions: number): Interval[] =>
  partsOf(text).flatMap((part) => {
    try {
      return [intervalOf(part, completions)];
    } catch {
      return [];
    }
  });

/** Returns the first index that both texts name; undefined if there is none. Both texts name indexes in increasing order. */
export function commonIndex(some: string, others: string, completions: number): number | undefined {
  const [left, right] = [validIntervals(some, completions), validIntervals(others, completions)];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const [a, b] = [left[i] as Interval, right[j] as Interval];
    if (a[0] <= b[1] && b[0] <= a[1]) return Math.max(a[0], b[0]);
    if (a[0] <= b[0]) i++;
    else j++;
  }
  return undefined;
}
