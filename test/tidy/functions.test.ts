/** The length of functions, from their first to their last line. */
import { expect, test } from 'vitest';
import { parseAst } from 'vitest/node';
import { read, typeScript } from './sources.ts';

const MOST_LINES = 70;

/** Longer functions, by file: this list may only shrink. */
const LONGER: Readonly<Record<string, number>> = {
};

interface SyntaxNode {
  type: string;
  start: number;
  end: number;
  [child: string]: unknown;
}

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && typeof (value as SyntaxNode).type === 'string';

function* nodesIn(node: SyntaxNode): Generator<SyntaxNode> {
  yield node;
  for (const child of Object.values(node).flat()) if (isNode(child)) yield* nodesIn(child);
}

/** The number of functions in the source that have more lines than MOST_LINES. */
function longFunctions(source: string): number {
  const program = parseAst(source, { lang: 'ts' }) as unknown as SyntaxNode;
  const lineOf = (offset: number): number => source.slice(0, offset).split('\n').length;
  return [...nodesIn(program)].filter(
    ({ type, start, end }) =>
      /^(Arrow)?Function(Declaration|Expression)$/.test(type) && lineOf(end) - lineOf(start) >= MOST_LINES,
  ).length;
}

test(`only the functions on the list have more than ${MOST_LINES} lines, and the list is not longer than needed`, () => {
  const counts = typeScript
    .filter((path) => !path.endsWith('.test.ts'))
    .map((path): [string, number] => [path, longFunctions(read(path))])
    .filter(([, count]) => count > 0);
  expect(Object.fromEntries(counts)).toEqual(LONGER);
});

test('the lines of functions are counted', () => {
  const lines = '\n'.repeat(MOST_LINES);
  expect(longFunctions(`const f = (): void => {${lines}};\nfunction g() {${lines.slice(1)}}`)).toBe(1);
});
