/**
 * Chooses the labels of a time axis: round times since the start (0s, 2s, 4s, …), as many as fit, without overlaps. Pure.
 */
import type { Millis } from '../../machinery/time.ts';
import type { Scale } from './scale.ts';

export interface Tick {
  /** The column of the tick's mark. The label follows in the next columns. */
  column: number;
  label: string;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const STEPS: readonly Millis[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 20, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000].map((count) => count * DAY),
];

/** The least number of blank columns between a label and the next mark. */
const GAP = 2;

const lastColumn = ({ column, label }: Tick): number => column + label.length;

/**
 * Returns the ticks in order. In each unshortened period of the scale, the ticks have the shortest distance with which their labels do not
 * overlap. Omits ticks that would use a reserved column or one of another tick.
 */
export function ticksOf(scale: Scale, from: Millis, reserved: ReadonlySet<number>): Tick[] {
  const ticks: Tick[] = [];
  // The start has a label even if the first period is a shortened one.
  for (const span of [{ begin: from, end: from }, ...scale.spans]) {
    const before = ticks.at(-1);
    const isFree = (tick: Tick): boolean =>
      (before === undefined || tick.column > lastColumn(before) + 1) &&
      lastColumn(tick) < scale.width &&
      columnsOf(tick).every((column) => !reserved.has(column));
    ticks.push(...ticksIn(scale, from, span, isFree));
  }
  return ticks;
}

const columnsOf = (tick: Tick): number[] => Array.from(`╵${tick.label}`, (_, index) => tick.column + index);

/** Returns the ticks of one period of the scale. If no tick of a fitting distance is free, returns at most one tick. */
function ticksIn(
  scale: Scale,
  from: Millis,
  { begin, end }: Scale['spans'][number],
  isFree: (tick: Tick) => boolean,
): Tick[] {
  const choices = STEPS.flatMap((step) => {
    const first = Math.ceil((begin - from) / step);
    const count = Math.max(0, Math.floor((end - from) / step) - first + 1);
    if (count > scale.width) return [];
    return [Array.from({ length: count }, (_, index) => tickAt(scale, from, (first + index) * step))];
  });
  const fitting = choices.filter(doFit).map((ticks) => ticks.filter(isFree));
  const single = choices.map((ticks) => ticks.filter(isFree).slice(0, 1)).toReversed();
  return [...fitting, ...single].find(({ length }) => length > 0) ?? [];
}

const doFit = (ticks: readonly Tick[]): boolean =>
  ticks.every((tick, index) => (ticks[index + 1]?.column ?? Number.POSITIVE_INFINITY) > lastColumn(tick) + GAP);

const tickAt = (scale: Scale, from: Millis, offset: Millis): Tick => ({
  column: scale.column(from + offset),
  label: exactDuration(offset),
});

/** Formats a duration exactly, without the units that are 0: 0s, 0.25s, 20s, 1m, 1m30s, 2h, 3d4s. */
export function exactDuration(millis: Millis): string {
  const units: [number, string][] = [
    [Math.floor(millis / DAY), 'd'],
    [Math.floor((millis % DAY) / HOUR), 'h'],
    [Math.floor((millis % HOUR) / MINUTE), 'm'],
    [(millis % MINUTE) / SECOND, 's'],
  ];
  return units.flatMap(([count, unit]) => (count === 0 ? [] : [`${count}${unit}`])).join('') || '0s';
}
