/** Aligns text in columns like kubectl describe. Pure. Source: Go's text/tabwriter with a padding of two spaces. */

const PADDING = 2;

/**
 * Returns the lines with padded cells instead of tabs. A tab ends a cell. In consecutive lines that all have a cell in a column, the cells
 * of this column get the same width. The text after the last tab of a line is not a cell and does not affect the widths.
 */
export function tabColumns(lines: readonly string[]): string[] {
  const cells = lines.map((line) => line.split('\t'));
  const widths = cells.map((): number[] => []);
  layOut(cells, widths, 0, 0, cells.length);
  return cells.map((parts, row) =>
    parts
      .map((text, column) => (column === parts.length - 1 ? text : text.padEnd(widths[row]?.[column] ?? 0)))
      .join(''),
  );
}

/** Sets the widths of the cells from `column` on, in the lines from `begin` (inclusive) to `end` (exclusive). */
function layOut(
  cells: readonly string[][],
  widths: readonly number[][],
  column: number,
  begin: number,
  end: number,
): void {
  const hasCell = (row: number): boolean => (cells[row]?.length ?? 0) > column + 1;
  for (let first = begin; first < end; first++) {
    if (!hasCell(first)) continue;
    let last = first;
    while (last < end && hasCell(last)) last++;
    const block = cells.slice(first, last);
    const width = Math.max(...block.map((parts) => parts[column]?.length ?? 0)) + PADDING;
    for (const row of widths.slice(first, last)) row[column] = width;
    layOut(cells, widths, column + 1, first, last);
    first = last - 1;
  }
}
