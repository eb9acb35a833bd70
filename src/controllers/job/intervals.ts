/**
 * Handles sets of completion indexes as ordered intervals, for example `0,2-4` in the status of a Job. The memory depends on the number of
 * intervals, not on the number of indexes. The functions are pure.
 * Source: pkg/controller/job/indexed_job_utils.go of v1.33 (the format).
 */

export type Interval = readonly [first: number, last: number];
/** In increasing order. Intervals neither overlap nor adjoin. */
export type Intervals = readonly Interval[];

/** Parses the indexes less than `completions`. Ignores invalid parts. */
export function parseIntervals(text: string | undefined, completions: number): Intervals {
  const found = (text ?? '').split(',').flatMap((part): Interval[] => {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (match === null) return [];
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? first), completions - 1);
    return first <= last ? [[first, last]] : [];
  });
  return union(found, []);
}

/** Formats intervals of two indexes as `2,3`, and longer ones as `2-4`. */
export const formatIntervals = (intervals: Intervals): string =>
  intervals
    .map(([first, last]) => {
      if (first === last) return `${first}`;
      return `${first}${last === first + 1 ? ',' : '-'}${last}`;
    })
    .join(',');

/** Returns the indexes that are in at least one of the sets. The intervals of the arguments may be in any order and may overlap. */
export function union(some: Intervals, others: Intervals): Intervals {
  const result: [number, number][] = [];
  for (const [first, last] of [...some, ...others].sort((a, b) => a[0] - b[0])) {
    const previous = result.at(-1);
    if (previous === undefined || first > previous[1] + 1) result.push([first, last]);
    else previous[1] = Math.max(previous[1], last);
  }
  return result;
}

export const withIndexes = (intervals: Intervals, indexes: Iterable<number>): Intervals =>
  union(
    intervals,
    Array.from(indexes, (index): Interval => [index, index]),
  );

export const total = (intervals: Intervals): number =>
  intervals.reduce((sum, [first, last]) => sum + last - first + 1, 0);

export function hasIndex(intervals: Intervals, index: number): boolean {
  let [low, high] = [0, intervals.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((intervals[middle]?.[1] ?? 0) >= index) high = middle;
    else low = middle + 1;
  }
  return (intervals[low]?.[0] ?? Number.POSITIVE_INFINITY) <= index;
}

export function countCommon(some: Intervals, others: Intervals): number {
  let count = 0;
  for (let i = 0, j = 0; i < some.length && j < others.length; ) {
    const [a, b] = [some[i] as Interval, others[j] as Interval];
    count += Math.max(0, Math.min(a[1], b[1]) - Math.max(a[0], b[0]) + 1);
    if (a[1] < b[1]) i++;
    else j++;
  }
  return count;
}

/** Returns the first `count` indexes less than `end` that are not in the set. */
export function firstMissing(intervals: Intervals, count: number, end: number): number[] {
  const result: number[] = [];
  let next = 0;
  for (const [first, last] of [...intervals, [end, end] as const]) {
    for (; next < Math.min(first, end) && result.length < count; next++) result.push(next);
    next = Math.max(next, last + 1);
  }
  return result;
}
