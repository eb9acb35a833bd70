/** What the specification of defer containers says is held by tests that exist. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { specification } from '../spec/defer-containers.ts';
import { REPOSITORY, read } from './sources.ts';

const sentences = Object.values(specification).flat();

test('every sentence has a test', () => {
  expect(sentences.length).toBeGreaterThan(60);
  expect(sentences.filter(({ tests }) => tests.length === 0)).toEqual([]);
});

/** A string of the source; its text is the second group. */
const TEXT = String.raw`(['"\`])((?:\\.|(?!\1).)*)\1`;
/** Where titles stand: of tests and groups of them, and in rows of a table, by position, key or name. */
const TITLES = [
  String.raw`\b(?:it|test|describe)(?:\.concurrent)?\(\s*${TEXT}`,
  String.raw`[\])]\(\s*${TEXT},\s`,
  String.raw`\[\s*${TEXT},`,
  String.raw`\['\w+', ${TEXT},`,
  String.raw`^\s*${TEXT}: *[([]`,
  String.raw`^\s*${TEXT}:$`,
  String.raw`\bname: ${TEXT}`,
].map((pattern) => new RegExp(pattern, 'gms'));

const titlesIn = (source: string): string[] =>
  TITLES.flatMap((pattern) => [...source.matchAll(pattern)].map(([, , title = '']) => title.replaceAll('\\', '')));

test('every test that is named exists, in a file of tests', () => {
  const missing = sentences
    .flatMap(({ tests }) => tests)
    .filter(([file, title]) => {
      if (!file.endsWith('.test.ts') || !existsSync(join(REPOSITORY, file))) return true;
      return title === '' || !titlesIn(read(file)).some((each) => each.includes(title));
    });
  expect(missing).toEqual([]);
});
