/**
 * Maps times to columns of a drawing. Long periods without steps are shortened, so that the steps around them remain visible: a Pod
 * may start in a second, run for days and end in a second. Pure.
 */
import type { Millis } from '../../machinery/time.ts';

export interface Scale {
  width: number;
  /** Returns the column of a time, from 0 to width - 1. */
  column(at: Millis): number;
  /** Returns the time at the left edge of a column. */
  timeAt(column: number): Millis;
  /** The duration from the first to the last column, without the time that the shortened periods omit. */
  shownMillis: number;
  /** The columns in the middle of the shortened periods. */
  cuts: number[];
  /** The periods between the shortened ones, in the order of their times. */
  spans: { begin: Millis; end: Millis }[];
}

/** A period without steps is shortened to half of the remaining time if it is more than this many times as long as that half. */
const CUT_FROM = 4;
const SHORTEST_CUT_MILLIS = 1000;

export function scaleOf(from: Millis, to: Millis, times: readonly Millis[], width: number): Scale {
  const inside = times.filter((at) => at > from && at < to);
  const points = [...new Set([from, ...inside, to])].sort((a, b) => a - b);
  const total = to - from;
  const gaps = points.slice(1).map((at, index) => {
    const begin = points[index] ?? at;
    const shown = Math.max(SHORTEST_CUT_MILLIS, (total - (at - begin)) / 2);
    // A single period fills the width and is never shortened.
    const cut = inside.length > 0 && at - begin > CUT_FROM * shown;
    return { begin, end: at, shown: cut ? shown : at - begin, cut };
  });
  const whole = gaps.reduce((sum, { shown }) => sum + shown, 0) || 1;
  let position = 0;
  const placed = gaps.map((gap) => {
    const start = position;
    position += (gap.shown / whole) * width;
    return { ...gap, start, stop: position };
  });
  const clamp = (column: number): number => Math.min(width - 1, Math.max(0, Math.floor(column)));
  return {
    width,
    shownMillis: whole,
    column(at) {
      const gap = placed.find(({ end }) => at < end) ?? placed.at(-1);
      if (gap === undefined) return 0;
      return clamp(gap.start + ((at - gap.begin) / (gap.end - gap.begin || 1)) * (gap.stop - gap.start));
    },
    timeAt(column) {
      const gap = placed.find(({ stop }) => column < stop) ?? placed.at(-1);
      if (gap === undefined) return from;
      return gap.begin + ((column - gap.start) / (gap.stop - gap.start || 1)) * (gap.end - gap.begin);
    },
    cuts: placed.filter(({ cut }) => cut).map(({ start, stop }) => clamp((start + stop) / 2)),
    spans: spansOf(placed),
  };
}

function spansOf(gaps: readonly { begin: Millis; end: Millis; cut: boolean }[]): Scale['spans'] {
  const spans: Scale['spans'] = [];
  let isNew = true;
  for (const { begin, end, cut } of gaps) {
    const last = spans.at(-1);
    if (!cut && (isNew || last === undefined)) spans.push({ begin, end });
    else if (!cut && last !== undefined) last.end = end;
    isNew = cut;
  }
  return spans;
}

/** Formats a duration with about three significant digits: 0s, 1.25s, 12.3s, 3m05s, 2h05m, 3d04h. */
export function shortDuration(millis: number): string {
  const sign = millis < 0 ? '-' : '';
  const exact = Math.abs(millis) / 1000;
  const seconds = exact < 59.95 ? exact : Math.round(exact);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  if (seconds === 0) return '0s';
  if (seconds < 9.995) return `${sign}${seconds.toFixed(2)}s`;
  if (seconds < 59.95) return `${sign}${seconds.toFixed(1)}s`;
  if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  if (seconds < 48 * 3600) return `${sign}${Math.floor(seconds / 3600)}h${two((seconds % 3600) / 60)}m`;
  return `${sign}${Math.floor(seconds / 86_400)}d${two((seconds % 86_400) / 3600)}h`;
}
