import { expect, test } from 'vitest';
import { parseAst } from 'vitest/node';
import { read, typeScript } from './sources.ts';

const MOST_LINES = 70;

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

function longFunctions(source: string): number {
  const program = parseAst(source, { lang: 'ts' }) as unknown as SyntaxNode;
  return [...nodesIn(program)].filter(
    ({ type, start, end }) =>
      /^(Arrow)?Function(Declaration|Expression)$/.test(type) &&
      source.slice(start, end).split('\n').length > MOST_LINES,
  ).length;
}

test(`no function has more than ${MOST_LINES} lines, except in test files, where a function may contain all tests`, () => {
  const tooLong = typeScript
    .filter((path) => !path.endsWith('.test.ts'))
    .filter((path) => longFunctions(read(path)) > 0);
  expect(tooLong).toEqual([]);
});

test('longFunctions counts functions and arrow functions over the limit, but none within it', () => {
  const lines = '\n'.repeat(MOST_LINES);
  expect(longFunctions(`const f = (): void => {${lines}};\nfunction g() {${lines.slice(1)}}`)).toBe(1);
});
