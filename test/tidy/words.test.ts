/** Comments and test titles are plain technical English: they begin with the subject, and components are not persons. */
import { expect, test } from 'vitest';
import { read, titlesIn, typeScript } from './sources.ts';

/** Openings that precede the subject, or describe a component as a person. */
const OPENING = /^(?:of|who|whoever|nobody|what is) /i;
/** Phrases that mean notify, report or unchanged. */
const PHRASE = /\b(?:is told|are told|tells of|told of|as ever|nobody|whoever|anew)\b/gi;

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

test('comments and test titles contain no phrase that has a plain equivalent', () => {
  const found = sources.flatMap((path) => {
    const source = read(path);
    const texts = [...commentsIn(source), ...(hasTitles(path) ? new Set(titlesIn(source)) : [])];
    return findingsIn(texts).map((finding) => `${path}: ${finding}`);
  });
  expect(found, 'reword these comments and titles').toEqual([]);
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
    'Nobody: Nobody knows.',
  ]);
  expect(findingsIn(titlesIn(source))).toEqual(['who watches is told', 'is told: who watches is told']);
});
