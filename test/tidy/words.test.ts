import { expect, test } from 'vitest';
import { files, read, titlesIn, typeScript } from './sources.ts';

/** Matches openings that precede the subject, or that describe a component as a person. */
const OPENING = /^(?:of|who|whoever|nobody|what is) /i;
/** Matches phrases that have a plain equivalent: notify, report or unchanged, for example. */
const PHRASE = /\b(?:is told|are told|tells of|told of|as ever|nobody|whoever|anew|goes on)\b/gi;

const BLOCK_COMMENT = /^[ \t]*\/\*\*?((?:(?!\*\/)[\s\S])*)\*\//gm;
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

/** Returns the string literals that contain a space: a message has at least two words. */
const messagesIn = (source: string): string[] =>
  [...source.matchAll(/(['"`])((?:\\.|(?!\1)[^\n\\])*)\1/g)]
    .map(([, , text = '']) => text)
    .filter((text) => text.includes(' '));

const PROGRAM_OUTPUT = /echo nobody|or nobody$/;

const phrasesIn = (text: string): string[] => [...text.matchAll(PHRASE)].map(([phrase]) => `${phrase}: ${text}`);

function findingsIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) => [...(OPENING.test(text) ? [text] : []), ...phrasesIn(text)]);
}

/** This file is excluded, because its test data contains the forbidden phrases. */
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

test('messages contain no phrase that has a plain equivalent', () => {
  const found = sources
    .filter((path) => path.startsWith('src/') && !hasTitles(path))
    .flatMap((path) =>
      messagesIn(read(path))
        .flatMap(phrasesIn)
        .map((finding) => `${path}: ${finding}`),
    );
  expect(found, 'reword these messages').toEqual([]);
});

test('documents and scripts contain no phrase that has a plain equivalent', () => {
  // CONTRIBUTING.md lists the phrases that must not be used.
  const documents = files.filter((path) => /\.(md|sh|yaml|life)$/.test(path) && path !== 'CONTRIBUTING.md');
  const found = documents.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line) => (PROGRAM_OUTPUT.test(line) ? [] : phrasesIn(line)))
      .map((finding) => `${path}: ${finding}`),
  );
  expect(found, 'reword these lines').toEqual([]);
});

test('the check finds the phrases in messages, and not in names', () => {
  const source = "const a = `the Pod is told to stop`; const user = 'nobody';\nconst b = 'nobody waits';";
  expect(messagesIn(source).flatMap(phrasesIn)).toEqual(['is told: the Pod is told to stop', 'nobody: nobody waits']);
});

test('the check finds the phrases in block, line and trailing comments and in titles', () => {
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
