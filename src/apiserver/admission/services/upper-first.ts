/**
 * Searches for free addresses and ports. The lower part of a range is for values that users choose, and is searched last.
 * Source: the allocators of pkg/registry/core/service of v1.33; KEP-3070 (addresses), KEP-3668 (ports).
 */

/** The values from `first` to `last`, of which the first `lowerSize` are the lower part. */
export interface DividedRange {
  first: bigint;
  last: bigint;
  lowerSize: bigint;
}

/** Returns a random free value; undefined if the range is full. `random` returns a random number from 0 to `below` - 1. */
export function searchUpperFirst(
  { first, last, lowerSize }: DividedRange,
  random: (below: bigint) => bigint,
  isFree: (value: bigint) => boolean,
): bigint | undefined {
  const upper = first + lowerSize;
  return search(upper, last, random, isFree) ?? search(first, upper - 1n, random, isFree);
}

function search(
  first: bigint,
  last: bigint,
  random: (below: bigint) => bigint,
  isFree: (value: bigint) => boolean,
): bigint | undefined {
  if (first > last) return undefined;
  const start = first + random(last - first + 1n);
  for (let value = start; value <= last; value++) if (isFree(value)) return value;
  for (let value = first; value < start; value++) if (isFree(value)) return value;
  return undefined;
}
