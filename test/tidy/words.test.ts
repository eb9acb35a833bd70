/** Comments and test titles are plain technical English: they begin with the subject, and components are not persons. */
import { expect, test } from 'vitest';
import { read, titlesIn, typeScript } from './sources.ts';

/** Openings that precede the subject, or describe a component as a person. */
const OPENING = /^(?:of|who|whoever|nobody|what is) /i;
/** Phrases that mean notify, report or unchanged. */
const PHRASE = /\b(?:is told|are told|tells of|told of|as ever)\b/gi;

/**
 * The number of findings in files that are still to be reworded. It may only become smaller: remove a file that has no
 * findings left, and do not add any.
 */
const KNOWN: Readonly<Record<string, number>> = {
  'src/platform/cgroups.ts': 1,
  'test/e2e/own-engine/resources.test.ts': 1,
};

const BLOCK_COMMENT = /^[ \t]*\/\*\*?((?:(?!\*\/)[\s\S])*)\*\//gm;
/** Consecutive lines are one comment. */
const LINE_COMMENT = /^[ \t]*\/\/ (.*(?:\n[ \t]*\/\/ .*)*)$/gm;
const TRAILING_COMMENT = /^(?![ \t]*\/\/).*\S[ \t]+\/\/ (.*)$/gm;

function commentsIn(source: string): string[] {
  const plain = (text: string): string =>
    text
      .replace(/^[ \t]*(?:\*|\/\/)? ?/gm, '')
      .replace(/\s+/g, ' ')
      .trim();
  return [BLOCK_COMMENT, LINE_COMMENT, TRAILING_COMMENT].flatMap((pattern) =>
    [...source.matchAll(pattern)].map(([, text = '']) => plain(text)),
  );
}

const hasTitles = (path: string): boolean => path.startsWith('test/') || path.endsWith('.test.ts');

function findingsIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) => [
    ...(OPENING.test(text) ? [text] : []),
    ...[...text.matchAll(PHRASE)].map(([phrase]) => `${phrase}: ${text}`),
  ]);
}

/** All sources but this one, whose samples are findings. */
const sources = typeScript.filter(
  (path) => /^(src|test|bench|scripts)\//.test(path) && path !== 'test/tidy/words.test.ts',
);
const found = new Map(
  sources.map((path) => {
    const source = read(path);
    return [path, findingsIn([...commentsIn(source), ...(hasTitles(path) ? new Set(titlesIn(source)) : [])])];
  }),
);

test('comments and test titles contain no phrase that has a plain equivalent', () => {
  const tooMany = [...found].filter(([path, findings]) => findings.length > (KNOWN[path] ?? 0));
  expect(tooMany, 'reword these comments and titles').toEqual([]);
});

test('the list of files with known phrases only becomes shorter', () => {
  const outdated = Object.entries(KNOWN)
    .map(([path, count]) => ({ path, count, found: found.get(path)?.length ?? 0 }))
    .filter((known) => known.found < known.count)
    .map((known) => `${known.path}: lower the count from ${known.count} to ${known.found}`);
  expect(outdated).toEqual([]);
});

test('comments of every form and titles are searched', () => {
  const source = [
    '/** Of a Pod. */',
    '/**',
    ' * The Pod is',
    ' * told to stop.',
    ' */',
    '  // It is a',
    '  // thing as ever.',
    'const a = 1; // Nobody knows.',
    '// Of all.',
    "const url = 'https://of a host';",
    'const text = "is told";',
    "test('who watches is told', () => {});",
  ].join('\n');
  expect(findingsIn(commentsIn(source))).toEqual([
    'Of a Pod.',
    'is told: The Pod is told to stop.',
    'as ever: It is a thing as ever.',
    'Of all.',
    'Nobody knows.',
  ]);
  expect(findingsIn(titlesIn(source))).toEqual(['who watches is told', 'is told: who watches is told']);
});
