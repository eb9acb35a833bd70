/**
 * Draws the life of a Pod for a terminal, with a row of bars for the sandbox and for each container along one time axis. Pure.
 */
import type { Transition } from '../../lifecycle/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { type BarKind, inOrder, type LifePicture, type MarkKind, type Named, pictureOf, type Row } from './life.ts';
import { type Scale, scaleOf, shortDuration } from './scale.ts';
import {
  causesOfMoves,
  endOfTermination,
  evictionMessage,
  firstSentence,
  terminationReason,
} from './termination-end.ts';
import { ticksOf } from './ticks.ts';

export interface DrawOptions {
  width: number;
  color: boolean;
  now: Millis;
  /** The containers in the Pod's spec; empty if the Pod no longer exists. */
  spec: readonly Named[];
  /** The deadline of the PreExit stage. The time after it is reserved for PostExit entries. */
  reservedFrom?: Millis | undefined;
}

type Color = 'red' | 'green' | 'yellow' | 'blue' | 'cyan' | 'dim' | 'none';
const SGR: Readonly<Record<Exclude<Color, 'none'>, number>> = {
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  cyan: 36,
  dim: 2,
};

interface Glyph {
  char: string;
  color: Color;
  means: string;
}

/** A later kind is drawn over earlier ones. */
const BARS: Readonly<Record<BarKind, Glyph>> = {
  waiting: { char: '·', color: 'dim', means: 'waiting' },
  backoff: { char: '░', color: 'yellow', means: 'back-off' },
  pulling: { char: '▒', color: 'blue', means: 'pulling' },
  sandbox: { char: '━', color: 'cyan', means: 'sandbox' },
  stopping: { char: '▓', color: 'yellow', means: 'stopping' },
  running: { char: '█', color: 'green', means: 'running' },
  succeeded: { char: '█', color: 'green', means: 'running' },
  failed: { char: '█', color: 'red', means: 'running' },
};
const RANK = Object.keys(BARS);
const isRun = (kind: BarKind): boolean => RANK.indexOf(kind) >= RANK.indexOf('stopping');

const MARKS: Readonly<Record<MarkKind, Glyph>> = {
  passing: { char: '▲', color: 'cyan', means: 'probe passes' },
  failing: { char: '▼', color: 'red', means: 'probe fails' },
  hook: { char: '◆', color: 'cyan', means: 'hook' },
  hookFailed: { char: '◇', color: 'red', means: 'hook failed' },
  lost: { char: '✗', color: 'red', means: 'lost' },
  ending: { char: '▽', color: 'yellow', means: 'termination begins' },
  skipped: { char: '∅', color: 'yellow', means: 'skipped' },
};
const DEADLINE: Glyph = { char: '┃', color: 'red', means: 'deadline' };
const FORMER: Glyph = { char: '┊', color: 'red', means: 'deadline before' };
const RESERVED: Glyph = { char: '╎', color: 'red', means: 'reserved for PostExit from here' };
const CUT: Glyph = { char: '≈', color: 'dim', means: 'time left out' };

const LONGEST_NAME = 24;
const KIND_NAMES = { sandbox: '', init: 'init', app: 'app', defer: 'defer', ephemeral: 'ephem' } as const;

type Cell = { char: string; color: Color; run?: boolean; label?: true } | undefined;

/** Returns the drawing as lines of text. Without color, no line is wider than the terminal; with color, lines are not cut. */
export function drawLife(transitions: readonly Transition[], options: DrawOptions): string[] {
  const picture = pictureOf(transitions, options);
  const used = new Set<Glyph>();
  const names = picture.rows.map(({ name }) => name.length);
  const nameWidth = Math.min(LONGEST_NAME, Math.max(...names));
  const stateWidth = Math.max(...picture.rows.map(({ state }) => state.length));
  const left = 6 + nameWidth + 1;
  const width = Math.max(10, options.width - left - 1 - stateWidth);
  const scale = scaleWithDeadline(picture, timesOf(transitions, picture), width);
  const paint = (cells: readonly Cell[]): string => painted(cells, options.color);
  const rows = picture.rows.map((row, index) => {
    const kind = picture.rows[index - 1]?.kind === row.kind ? '' : KIND_NAMES[row.kind];
    const label = `${kind.padEnd(5)} ${shortened(row.name, nameWidth).padEnd(nameWidth)} `;
    return `${label}${paint(cellsOf(row, picture, scale, used))} ${row.state}`.trimEnd();
  });
  const axis = `${' '.repeat(left)}${paint(axisCells(picture, scale, used))}`.trimEnd();
  const lines = [axis, ...rows, '', ...summary(picture, transitions, options.width), ...legend(used, options)];
  return lines.map((line) => (options.color ? line : line.slice(0, options.width)));
}

/**
 * Returns the scale of the time axis. The axis includes a deadline after the last step, unless the Pod has ended before it, or its life is
 * over and the rest until the deadline is longer than half of the shown time.
 */
function scaleWithDeadline(picture: LifePicture, times: readonly Millis[], width: number): Scale {
  const { from, to, deadline, over, endedInTime } = picture;
  const scale = scaleOf(from, to, times, width);
  if (deadline === undefined || deadline <= to || endedInTime) return scale;
  if (over && deadline - to > scale.shownMillis / 2) return scale;
  return scaleOf(from, deadline, times, width);
}

const timesOf = (transitions: readonly Transition[], { to, deadline, endedInTime }: LifePicture): Millis[] => [
  ...transitions.map(({ at }) => at),
  to,
  ...(deadline === undefined || endedInTime ? [] : [deadline]),
];

function cellsOf(row: Row, picture: LifePicture, scale: Scale, used: Set<Glyph>): Cell[] {
  const cells: Cell[] = Array.from({ length: scale.width });
  const glyphs = new Map<number, Glyph>();
  const put = (column: number, glyph: Glyph, run = false): void => {
    cells[column] = { char: glyph.char, color: glyph.color, run };
    glyphs.set(column, glyph);
  };
  for (const bar of [...row.bars].sort((a, b) => RANK.indexOf(a.kind) - RANK.indexOf(b.kind))) {
    const first = scale.column(bar.from);
    const last = Math.max(first, scale.column(bar.to) - 1);
    for (let column = first; column <= last; column++) put(column, BARS[bar.kind], isRun(bar.kind));
  }
  for (const mark of row.marks) put(scale.column(mark.at), MARKS[mark.kind], true);
  for (const exit of row.exits) {
    const end = scale.column(exit.at);
    // A bar that is shorter than a column still fills one, here the column of the exit.
    const isFilled = row.bars.some((bar) => isRun(bar.kind) && bar.to === exit.at && scale.column(bar.from) === end);
    const follows = row.bars.some((bar) => isRun(bar.kind) && bar.from >= exit.at && scale.column(bar.from) === end);
    placeExit(cells, { end, runEnd: isFilled && !follows ? end + 1 : end }, exit.text, exit.failed);
  }
  for (const { column, glyph } of deadlines(picture, scale)) {
    const cell = cells[column];
    if (cell === undefined || cell.char === BARS.waiting.char || cell.char === BARS.backoff.char) put(column, glyph);
  }
  // The legend explains the glyphs that remain visible.
  for (const [column, glyph] of glyphs) if (cells[column]?.label !== true) used.add(glyph);
  return cells;
}

/**
 * Writes the exit code after the run, or over its end if there is no room, or not at all if the run is too short. Two codes never touch,
 * because they would read as one. `runEnd`: the column after the last one that the run fills.
 */
function placeExit(
  cells: Cell[],
  { end, runEnd }: { end: number; runEnd: number },
  text: string,
  failed: boolean,
): void {
  const isAlone = (from: number): boolean =>
    !cells.slice(Math.max(0, from - 1), from + text.length + 1).some((cell) => cell?.label === true);
  const fits = (from: number): boolean =>
    isAlone(from) &&
    from >= 0 &&
    from + text.length <= cells.length &&
    [...text].every((_, i) => cells[from + i]?.run !== true);
  const color = failed ? 'red' : 'green';
  const inside = runEnd - text.length;
  const isBar = inside > 0 && cells.slice(inside - 1, runEnd).every((cell) => cell?.run === true);
  const from = [end, end + 1, end + 2].find(fits) ?? (isBar && isAlone(inside) ? inside : undefined);
  if (from === undefined) return;
  for (const [index, char] of [...text].entries()) cells[from + index] = { char, color, run: true, label: true };
}

const deadlines = (
  { deadline, formerDeadlines, reservedFrom, from, endedInTime }: LifePicture,
  scale: Scale,
): { column: number; glyph: Glyph }[] => {
  if (endedInTime) return [];
  const shown = [
    ...formerDeadlines.map((at) => ({ at, glyph: FORMER })),
    ...(reservedFrom === undefined ? [] : [{ at: reservedFrom, glyph: RESERVED }]),
    ...(deadline === undefined ? [] : [{ at: deadline, glyph: DEADLINE }]),
  ];
  const limit = scale.timeAt(scale.width);
  return shown.flatMap(({ at, glyph }) => (at >= from && at <= limit ? [{ column: scale.column(at), glyph }] : []));
};

/** Returns the cells of the time axis. Omits a time that would overlap a cut or a deadline. */
function axisCells(picture: LifePicture, scale: Scale, used: Set<Glyph>): Cell[] {
  const cells: Cell[] = Array.from({ length: scale.width });
  const marks = [...scale.cuts.map((column) => ({ column, glyph: CUT })), ...deadlines(picture, scale)];
  for (const { column, glyph } of marks) cells[column] = glyph;
  for (const { column, glyph } of marks) if (cells[column] === glyph) used.add(glyph);
  for (const { column, label } of ticksOf(scale, picture.from, new Set(marks.map((mark) => mark.column))))
    for (const [index, char] of [...`╵${label}`].entries()) cells[column + index] = { char, color: 'dim' };
  return cells;
}

function painted(cells: readonly Cell[], color: boolean): string {
  const plain = cells.map((cell) => cell?.char ?? ' ');
  if (!color) return plain.join('');
  let text = '';
  let current: Color = 'none';
  for (const cell of cells) {
    const next = cell?.color ?? 'none';
    if (next !== current) text += next === 'none' ? '\u001b[0m' : `\u001b[0;${SGR[next]}m`;
    current = next;
    text += cell?.char ?? ' ';
  }
  return current === 'none' ? text : `${text}\u001b[0m`;
}

const shortened = (name: string, width: number): string =>
  name.length <= width ? name : `${name.slice(0, width - 1)}…`;

function summary(
  { from, to, deadline, formerDeadlines, reservedFrom, finished, ending, over }: LifePicture,
  steps: readonly Transition[],
  width: number,
): string[] {
  const lines = [`from ${formatTime(from)}, ${shortDuration(to - from)}${over ? ', gone' : ' until now'}`];
  if (ending === undefined) return lines;
  const after = (time: Millis): string => shortDuration(time - ending.at);
  // A deadline that has moved by only milliseconds has the same text, and is omitted.
  const former = new Set(
    formerDeadlines.map(after).filter((text) => deadline === undefined || text !== after(deadline)),
  );
  const moves = causesOfMoves(
    inOrder(steps).filter(({ type }) => type === 'DeadlineSet'),
    ending,
  );
  const cause = moves === undefined ? '' : `, moved by ${moves}`;
  const moved = former.size > 0 ? ` (before: ${[...former].join(', ')}${cause})` : '';
  const reserved =
    deadline === undefined || reservedFrom === undefined
      ? ''
      : `, ${shortDuration(deadline - reservedFrom)} of it for PostExit entries`;
  const until = deadline === undefined ? '' : `, deadline ${after(deadline)} later${moved}${reserved}`;
  const gone = steps.find(({ type }) => type === 'Gone') ?? steps.find(({ type }) => type === 'Removed');
  const ended = gone === undefined ? finished : endOfTermination(inOrder(steps))?.at;
  const ends = [
    ...(ended === undefined || ended === gone?.at ? [] : [{ what: endedWords(ended, gone?.at), at: ended }]),
    ...(gone === undefined ? [] : [{ what: 'gone', at: gone.at }]),
  ];
  const end = ends.sort((a, b) => a.at - b.at).map(({ what, at }) => `, ${what} after ${after(at)}`);
  const eviction = evictionMessage(steps);
  const why = `${terminationReason(ending)}${eviction === undefined ? '' : ` (${firstSentence(eviction)})`}`;
  return [...lines, ...wrapped(`${why} at +${shortDuration(ending.at - from)}${until}${end.join('')}`, width)];
}

/** The containers may end after the deletion of the object. */
const endedWords = (ended: Millis, gone: Millis | undefined): string =>
  gone !== undefined && gone < ended ? 'its containers ended' : 'ended';

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function legend(used: ReadonlySet<Glyph>, { width, color }: DrawOptions): string[] {
  const known = [...Object.values(BARS), ...Object.values(MARKS), RESERVED, DEADLINE, FORMER, CUT].filter((glyph) =>
    used.has(glyph),
  );
  const lines: string[] = [];
  let column = width;
  for (const glyph of new Map(known.map((each) => [each.char, each])).values()) {
    const text = `${painted([glyph], color)} ${glyph.means}`;
    const columns = glyph.means.length + 4;
    if (column + columns > width + 2) {
      lines.push(text);
      column = columns;
    } else {
      lines.push(`${lines.pop()}  ${text}`);
      column += columns;
    }
  }
  return lines;
}

/** Returns a line for each step, such as `+1.250s  app#0  Exited  1 Error`. Times are relative to `since`, by default the first step. */
export function stepLines(transitions: readonly Transition[], since?: Millis): string[] {
  const steps = inOrder(transitions);
  const from = since ?? steps[0]?.at ?? 0;
  const rows = steps.map((step) => stepCells(step, from));
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function stepCells(step: Transition, from: Millis): [string, string, string, string] {
  const { at, type, container, attempt, exitCode, reason, message, deadline } = step;
  const where = container === undefined ? '' : attempt === undefined ? container : `${container}#${attempt}`;
  const until = deadline === undefined ? undefined : `until +${shortDuration(deadline - from)}`;
  const what = [exitCode, reason, until, message?.replaceAll(/\s+/g, ' ').trim()].filter((part) => part !== undefined);
  return [`+${((at - from) / 1000).toFixed(3)}s`, where, type, what.join(' ')];
}
